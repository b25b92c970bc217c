"""Window functions; formulas of ``torch.signal.windows``. ``sym=False`` drops the last of M + 1 points."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp


def general_cosine(length: int, weights: Sequence[float], sym: bool = True) -> jax.Array:
    """Σ (−1)^k·a_k·cos(2πkn / (M − 1))."""
    if length <= 1:
        return jnp.ones(length)
    turn = 2 * math.pi * jnp.arange(length) / (length - 1 if sym else length)
    return sum((-1) ** k * a * jnp.cos(k * turn) for k, a in enumerate(weights))


def bartlett(length: int, sym: bool = True) -> jax.Array:
    """1 − |2n / (M − 1) − 1|, a triangle from 0 to 0."""
    if length <= 1:
        return jnp.ones(length)
    return 1 - jnp.abs(2 * jnp.arange(length) / (length - 1 if sym else length) - 1)


def cosine(length: int, sym: bool = True) -> jax.Array:
    """sin(π(n + ½) / M)."""
    return jnp.sin(
        math.pi * (jnp.arange(length) + 0.5) / (length if sym or length == 1 else length + 1)
    )


def exponential(
    length: int, center: float | None = None, tau: float = 1.0, sym: bool = True
) -> jax.Array:
    """exp(−|n − center| / τ)."""
    if center is None:
        center = (length - 1 if sym or length == 1 else length) / 2
    return jnp.exp(-jnp.abs(jnp.arange(length) - center) / tau)


def gaussian(length: int, std: float = 1.0, sym: bool = True) -> jax.Array:
    """exp(−½((n − center) / std)²)."""
    center = (length - 1 if sym or length == 1 else length) / 2
    return jnp.exp(-0.5 * ((jnp.arange(length) - center) / std) ** 2)


def kaiser(length: int, beta: float = 12.0, sym: bool = True) -> jax.Array:
    """I₀(β√(1 − (2n / (M − 1) − 1)²)) / I₀(β)."""
    if length <= 1:
        return jnp.ones(length)
    place = 2 * jnp.arange(length) / (length - 1 if sym else length) - 1
    # The exponentially scaled I₀ keeps large β finite.
    root = beta * jnp.sqrt(jnp.maximum(1 - place**2, 0))
    return jnp.exp(root - beta) * jax.scipy.special.i0e(root) / jax.scipy.special.i0e(beta)
