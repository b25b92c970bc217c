"""Hermitian transforms of several axes and the short-time Fourier transform."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

_INVERSE = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _axes(x: jax.Array, s: Sequence[int] | None, axes: int | Sequence[int] | None) -> list[int]:
    if axes is None:
        return list(range(-len(s) if s is not None else -x.ndim, 0))
    return [axes] if isinstance(axes, int) else list(axes)


def hfftn(
    x: jax.Array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> jax.Array:
    """Real Fourier transform of a signal that is Hermitian in its last axis."""
    return jnp.fft.irfftn(jnp.conj(x), s, _axes(x, s, axes), _INVERSE[norm])


def ihfftn(
    x: jax.Array,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> jax.Array:
    """Inverse of ``hfftn``: the half of the spectrum of a real signal that is not redundant."""
    return jnp.conj(jnp.fft.rfftn(x, s, _axes(x, s, axes), _INVERSE[norm]))


def _window(window: jax.Array | None, length: int, n_fft: int, dtype: jnp.dtype) -> jax.Array:
    """The window, or ones, in the middle of ``n_fft`` places."""
    window = jnp.ones(length, dtype) if window is None else window
    left = (n_fft - length) // 2
    return jnp.pad(window, (left, n_fft - length - left))


def stft(
    x: jax.Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: jax.Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
) -> jax.Array:
    """``torch.stft``: (…, time) → (…, frequency, frame), complex."""
    hop = hop_length or n_fft // 4
    if center:
        mode = {"replicate": "edge", "circular": "wrap"}.get(pad_mode, pad_mode)
        x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], mode=mode)
    frames = 1 + (x.shape[-1] - n_fft) // hop
    places = jnp.arange(frames)[:, None] * hop + jnp.arange(n_fft)
    pieces = x[..., places] * _window(window, win_length or n_fft, n_fft, x.real.dtype)
    norm = "ortho" if normalized else None
    whole = onesided is False or jnp.iscomplexobj(pieces)
    spectrum = jnp.fft.fft(pieces, norm=norm) if whole else jnp.fft.rfft(pieces, norm=norm)
    return spectrum.swapaxes(-1, -2)


def istft(
    spectrum: jax.Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: jax.Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> jax.Array:
    """``torch.istft``: overlapped inverse transforms divided by the overlapped squared window."""
    hop = hop_length or n_fft // 4
    window = _window(window, win_length or n_fft, n_fft, spectrum.real.dtype)
    norm = "ortho" if normalized else None
    frames = spectrum.swapaxes(-1, -2)
    if return_complex:
        pieces = jnp.fft.ifft(frames, norm=norm)
    elif onesided is False or (onesided is None and frames.shape[-1] == n_fft):
        pieces = jnp.fft.irfft(frames[..., : n_fft // 2 + 1], n_fft, norm=norm)
    else:
        pieces = jnp.fft.irfft(frames, n_fft, norm=norm)
    count = frames.shape[-2]
    total = n_fft + hop * (count - 1)
    places = jnp.arange(count)[:, None] * hop + jnp.arange(n_fft)
    signal = (
        jnp.zeros((*pieces.shape[:-2], total), pieces.dtype).at[..., places].add(pieces * window)
    )
    weight = (
        jnp.zeros(total, window.dtype).at[places].add(jnp.broadcast_to(window**2, places.shape))
    )
    start = n_fft // 2 if center else 0
    stop = total - (n_fft // 2 if center else 0) if length is None else start + length
    signal = signal[..., start:stop] / weight[start:stop]
    missing = 0 if length is None else length - signal.shape[-1]
    return jnp.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])


def real_and_imaginary(x: jax.Array) -> jax.Array:
    """Both parts of a complex array (…) on a last axis: (…, 2)."""
    return jnp.stack([x.real, x.imag], axis=-1)
