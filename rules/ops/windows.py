"""Window functions: ``torch.hann_window`` and its kin (periodic by default), ``torch.signal.windows``."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.windows import (
    bartlett,
    cosine,
    exponential,
    gaussian,
    general_cosine,
    kaiser,
)
from rules.registry import op


@op(
    "torch.hann_window",
    example={
        "torch.hann_window(8)": "jnp.hanning(9)[:-1]",
        "torch.hann_window(8, periodic=False)": "jnp.hanning(8)",
    },
)
def hann_window(
    window_length,
    periodic=True,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
) -> Tensor["float"]:
    """½ − ½·cos; one period by default, symmetric with periodic=False."""
    if window_length == 1:
        window = jnp.ones(1)
    elif periodic:
        window = jnp.hanning(window_length + 1)[:-1]
    else:
        window = jnp.hanning(window_length)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.blackman_window",
    example={
        "torch.blackman_window(8)": "jnp.blackman(9)[:-1]",
        "torch.blackman_window(8, periodic=False)": "jnp.blackman(8)",
    },
)
def blackman_window(
    window_length,
    periodic=True,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
) -> Tensor["float"]:
    """Three cosine terms."""
    if window_length == 1:
        window = jnp.ones(1)
    elif periodic:
        window = jnp.blackman(window_length + 1)[:-1]
    else:
        window = jnp.blackman(window_length)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.bartlett_window",
    example={
        "torch.bartlett_window(8)": "jnp.bartlett(9)[:-1]",
        "torch.bartlett_window(8, periodic=False)": "jnp.bartlett(8)",
    },
)
def bartlett_window(
    window_length,
    periodic=True,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
) -> Tensor["float"]:
    """A triangle."""
    if window_length == 1:
        window = jnp.ones(1)
    elif periodic:
        window = jnp.bartlett(window_length + 1)[:-1]
    else:
        window = jnp.bartlett(window_length)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.hamming_window",
    example={
        "torch.hamming_window(8)": "general_cosine(8, (0.54, 0.46), sym=False)",
    },
)
def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
) -> Tensor["float"]:
    """alpha − beta·cos."""
    if alpha == 0.54 and beta == 0.46 and not periodic:
        window = jnp.hamming(window_length)
    else:
        window = general_cosine(window_length, (alpha, beta), sym=not periodic)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op("torch.kaiser_window", example={"torch.kaiser_window(8)": "kaiser(8, sym=False)"})
def kaiser_window(
    window_length,
    periodic=True,
    beta=12.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
) -> Tensor["float"]:
    """A Bessel function of the ellipse."""
    window = kaiser(window_length, beta=beta, sym=not periodic)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op("torch.signal.windows.bartlett", example={"torch.signal.windows.bartlett(8)": "bartlett(8)"})
def signal_bartlett(
    M,
    *,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """A triangle."""
    window = bartlett(M, sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.blackman",
    example={"torch.signal.windows.blackman(8)": "general_cosine(8, (0.42, 0.5, 0.08))"},
)
def signal_blackman(
    M,
    *,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """Three cosine terms."""
    window = general_cosine(M, (0.42, 0.5, 0.08), sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op("torch.signal.windows.cosine", example={"torch.signal.windows.cosine(8)": "cosine(8)"})
def signal_cosine(
    M,
    *,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """Half a period of a sine."""
    window = cosine(M, sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.exponential",
    example={"torch.signal.windows.exponential(8)": "exponential(8)"},
)
def signal_exponential(
    M,
    *,
    center=None,
    tau=1.0,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """Decay to both sides of the centre."""
    window = exponential(M, center=center, tau=tau, sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op("torch.signal.windows.gaussian", example={"torch.signal.windows.gaussian(8)": "gaussian(8)"})
def signal_gaussian(
    M,
    *,
    std=1.0,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """A bell."""
    window = gaussian(M, std=std, sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.general_cosine",
    example={
        "torch.signal.windows.general_cosine(8, a=[0.5, 0.5])": "general_cosine(8, [0.5, 0.5])"
    },
)
def signal_general_cosine(
    M,
    *,
    a,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """Alternating sum of cosines."""
    window = general_cosine(M, a, sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.general_hamming",
    example={"torch.signal.windows.general_hamming(8, alpha=0.5)": "general_cosine(8, (0.5, 0.5))"},
)
def signal_general_hamming(
    M,
    *,
    alpha=0.54,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """alpha − (1 − alpha)·cos."""
    window = general_cosine(M, (alpha, 1 - alpha), sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.hamming",
    example={"torch.signal.windows.hamming(8)": "general_cosine(8, (0.54, 0.46))"},
)
def signal_hamming(
    M,
    *,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """0.54 − 0.46·cos."""
    window = general_cosine(M, (0.54, 0.46), sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.hann",
    example={"torch.signal.windows.hann(8)": "general_cosine(8, (0.5, 0.5))"},
)
def signal_hann(
    M,
    *,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """½ − ½·cos."""
    window = general_cosine(M, (0.5, 0.5), sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op("torch.signal.windows.kaiser", example={"torch.signal.windows.kaiser(8)": "kaiser(8)"})
def signal_kaiser(
    M,
    *,
    beta=12.0,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """A Bessel function of the ellipse."""
    window = kaiser(M, beta=beta, sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window


@op(
    "torch.signal.windows.nuttall",
    example={
        "torch.signal.windows.nuttall(8)": "general_cosine(8, (0.3635819, 0.4891775, 0.1365995, 0.0106411))"
    },
)
def signal_nuttall(
    M,
    *,
    sym=True,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
) -> Tensor["float"]:
    """Four cosine terms."""
    window = general_cosine(M, (0.3635819, 0.4891775, 0.1365995, 0.0106411), sym=sym)
    if dtype is not None:
        return window.astype(dtype)
    return window
