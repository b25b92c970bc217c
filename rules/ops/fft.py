"""``torch.fft`` on ``jnp.fft``; ``stft`` and ``istft``.

Integer input becomes float32, as with torch's default dtype; ``norm`` means the same in both.
"""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.fft import hfftn as hermitian_fft
from rules.compat.fft import ihfftn as inverse_hermitian_fft
from rules.compat.fft import istft as inverse_short_time_fourier
from rules.compat.fft import real_and_imaginary
from rules.compat.fft import stft as short_time_fourier
from rules.registry import is_complex, op, surely, unsupported


@op("torch.fft.fft", example={"torch.fft.fft(x, dim=1)": "jnp.fft.fft(x, axis=1)"})
def fft(input, n=None, dim=-1, norm=None) -> Tensor["complex"]:
    """Discrete Fourier transform of one axis."""
    return jnp.fft.fft(input, n=n, axis=dim, norm=norm)


@op("torch.fft.ifft", example={"torch.fft.ifft(x)": "jnp.fft.ifft(x)"})
def ifft(input, n=None, dim=-1, norm=None) -> Tensor["complex"]:
    """Inverse of ``fft``."""
    return jnp.fft.ifft(input, n=n, axis=dim, norm=norm)


@op("torch.fft.rfft", example={'torch.fft.rfft(x, norm="ortho")': 'jnp.fft.rfft(x, norm="ortho")'})
def rfft(input, n=None, dim=-1, norm=None) -> Tensor["complex"]:
    """Fourier transform of a real axis, the half that is not redundant."""
    return jnp.fft.rfft(input, n=n, axis=dim, norm=norm)


@op("torch.fft.irfft", example={"torch.fft.irfft(x, n=8)": "jnp.fft.irfft(x, n=8)"})
def irfft(input, n=None, dim=-1, norm=None) -> Tensor["float"]:
    """Inverse of ``rfft``."""
    return jnp.fft.irfft(input, n=n, axis=dim, norm=norm)


@op("torch.fft.hfft", example={"torch.fft.hfft(x)": "jnp.fft.hfft(x)"})
def hfft(input, n=None, dim=-1, norm=None) -> Tensor["float"]:
    """Fourier transform of a signal that is Hermitian in time."""
    return jnp.fft.hfft(input, n=n, axis=dim, norm=norm)


@op("torch.fft.ihfft", example={"torch.fft.ihfft(x)": "jnp.fft.ihfft(x)"})
def ihfft(input, n=None, dim=-1, norm=None) -> Tensor["complex"]:
    """Inverse of ``hfft``."""
    return jnp.fft.ihfft(input, n=n, axis=dim, norm=norm)


@op("torch.fft.fft2", example={"torch.fft.fft2(x)": "jnp.fft.fft2(x)"})
def fft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor["complex"]:
    """Fourier transform of two axes."""
    if surely(isinstance(dim, int)):
        return jnp.fft.fftn(input, s=s, axes=(dim,), norm=norm)
    if surely(len(dim) != 2):
        return jnp.fft.fftn(input, s=s, axes=dim, norm=norm)
    if dim == (-2, -1):
        return jnp.fft.fft2(input, s=s, norm=norm)
    return jnp.fft.fft2(input, s=s, axes=dim, norm=norm)


@op("torch.fft.ifft2", example={"torch.fft.ifft2(x)": "jnp.fft.ifft2(x)"})
def ifft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor["complex"]:
    """Inverse of ``fft2``."""
    if surely(isinstance(dim, int)):
        return jnp.fft.ifftn(input, s=s, axes=(dim,), norm=norm)
    if surely(len(dim) != 2):
        return jnp.fft.ifftn(input, s=s, axes=dim, norm=norm)
    if dim == (-2, -1):
        return jnp.fft.ifft2(input, s=s, norm=norm)
    return jnp.fft.ifft2(input, s=s, axes=dim, norm=norm)


@op("torch.fft.rfft2", example={"torch.fft.rfft2(x)": "jnp.fft.rfft2(x)"})
def rfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor["complex"]:
    """Fourier transform of two real axes."""
    if surely(isinstance(dim, int)):
        return jnp.fft.rfftn(input, s=s, axes=(dim,), norm=norm)
    if surely(len(dim) != 2):
        return jnp.fft.rfftn(input, s=s, axes=dim, norm=norm)
    if dim == (-2, -1):
        return jnp.fft.rfft2(input, s=s, norm=norm)
    return jnp.fft.rfft2(input, s=s, axes=dim, norm=norm)


@op("torch.fft.irfft2", example={"torch.fft.irfft2(x, s=(8, 8))": "jnp.fft.irfft2(x, s=(8, 8))"})
def irfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor["float"]:
    """Inverse of ``rfft2``."""
    if surely(isinstance(dim, int)):
        return jnp.fft.irfftn(input, s=s, axes=(dim,), norm=norm)
    if surely(len(dim) != 2):
        return jnp.fft.irfftn(input, s=s, axes=dim, norm=norm)
    if dim == (-2, -1):
        return jnp.fft.irfft2(input, s=s, norm=norm)
    return jnp.fft.irfft2(input, s=s, axes=dim, norm=norm)


@op("torch.fft.fftn", example={"torch.fft.fftn(x, dim=(1, 2))": "jnp.fft.fftn(x, axes=(1, 2))"})
def fftn(input, s=None, dim=None, norm=None) -> Tensor["complex"]:
    """Fourier transform of several axes."""
    if surely(isinstance(dim, int)):
        dim = (dim,)
    return jnp.fft.fftn(input, s=s, axes=dim, norm=norm)


@op("torch.fft.ifftn", example={"torch.fft.ifftn(x, dim=(1, 2))": "jnp.fft.ifftn(x, axes=(1, 2))"})
def ifftn(input, s=None, dim=None, norm=None) -> Tensor["complex"]:
    """Inverse of ``fftn``."""
    if surely(isinstance(dim, int)):
        dim = (dim,)
    return jnp.fft.ifftn(input, s=s, axes=dim, norm=norm)


@op("torch.fft.rfftn", example={"torch.fft.rfftn(x, dim=(1, 2))": "jnp.fft.rfftn(x, axes=(1, 2))"})
def rfftn(input, s=None, dim=None, norm=None) -> Tensor["complex"]:
    """Fourier transform of several real axes."""
    if surely(isinstance(dim, int)):
        dim = (dim,)
    return jnp.fft.rfftn(input, s=s, axes=dim, norm=norm)


@op(
    "torch.fft.irfftn",
    example={"torch.fft.irfftn(x, dim=(1, 2))": "jnp.fft.irfftn(x, axes=(1, 2))"},
)
def irfftn(input, s=None, dim=None, norm=None) -> Tensor["float"]:
    """Inverse of ``rfftn``."""
    if surely(isinstance(dim, int)):
        dim = (dim,)
    return jnp.fft.irfftn(input, s=s, axes=dim, norm=norm)


@op("torch.fft.hfft2", example={"torch.fft.hfft2(x)": "hfftn(x, axes=(-2, -1))"})
def hfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor["float"]:
    """``hfft`` of two axes."""
    return hermitian_fft(input, s=s, axes=dim, norm=norm)


@op("torch.fft.hfftn", example={"torch.fft.hfftn(x)": "hfftn(x)"})
def hfftn(input, s=None, dim=None, norm=None) -> Tensor["float"]:
    """``hfft`` of several axes."""
    return hermitian_fft(input, s=s, axes=dim, norm=norm)


@op("torch.fft.ihfft2", example={"torch.fft.ihfft2(x)": "ihfftn(x, axes=(-2, -1))"})
def ihfft2(input, s=None, dim=(-2, -1), norm=None) -> Tensor["complex"]:
    """``ihfft`` of two axes."""
    return inverse_hermitian_fft(input, s=s, axes=dim, norm=norm)


@op("torch.fft.ihfftn", example={"torch.fft.ihfftn(x)": "ihfftn(x)"})
def ihfftn(input, s=None, dim=None, norm=None) -> Tensor["complex"]:
    """``ihfft`` of several axes."""
    return inverse_hermitian_fft(input, s=s, axes=dim, norm=norm)


@op("torch.fft.fftshift", example={"torch.fft.fftshift(x, dim=1)": "jnp.fft.fftshift(x, axes=1)"})
def fftshift(input, dim=None) -> Tensor["same"]:
    """Moves frequency 0 to the middle."""
    return jnp.fft.fftshift(input, axes=dim)


@op("torch.fft.ifftshift", example={"torch.fft.ifftshift(x)": "jnp.fft.ifftshift(x)"})
def ifftshift(input, dim=None) -> Tensor["same"]:
    """Inverse of ``fftshift``."""
    return jnp.fft.ifftshift(input, axes=dim)


@op("torch.fft.fftfreq", example={"torch.fft.fftfreq(8)": "jnp.fft.fftfreq(8)"})
def fftfreq(
    n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False
) -> Tensor["float"]:
    """The frequencies of an ``fft``."""
    return jnp.fft.fftfreq(n, d=d, dtype=dtype)


@op("torch.fft.rfftfreq", example={"torch.fft.rfftfreq(8, d=0.1)": "jnp.fft.rfftfreq(8, d=0.1)"})
def rfftfreq(
    n, d=1.0, *, dtype=None, layout=None, device=None, requires_grad=False
) -> Tensor["float"]:
    """The frequencies of an ``rfft``."""
    return jnp.fft.rfftfreq(n, d=d, dtype=dtype)


@op(
    "torch.stft",
    "Tensor.stft",
    example={
        "torch.stft(x, 16, window=y, return_complex=True)": "stft(x, 16, window=y)",
    },
)
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
) -> Tensor:
    """Fourier transforms of overlapping windows: (…, time) → (…, frequency, frame), or both parts on a last axis."""
    if return_complex is None and not surely(is_complex(input)):
        unsupported("stft without return_complex, which torch wants for a real signal")
    if align_to_window:
        unsupported("stft(align_to_window=True)")
    spectrum = short_time_fourier(
        input,
        n_fft,
        hop_length=hop_length,
        win_length=win_length,
        window=window,
        center=center,
        pad_mode=pad_mode,
        normalized=normalized,
        onesided=onesided,
    )
    if return_complex is not None and not return_complex:
        return real_and_imaginary(spectrum)
    return spectrum


@op(
    "torch.istft",
    "Tensor.istft",
    example={"torch.istft(x, 16, window=y)": "istft(x, 16, window=y)"},
)
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
) -> Tensor:
    """Inverse of ``stft``: (…, frequency, frame) → (…, time)."""
    return inverse_short_time_fourier(
        input,
        n_fft,
        hop_length=hop_length,
        win_length=win_length,
        window=window,
        center=center,
        normalized=normalized,
        onesided=onesided,
        length=length,
        return_complex=return_complex,
    )
