"""Changes of shape that JAX lacks."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np


def squeeze(x: jax.Array, axis: int | tuple[int, ...]) -> jax.Array:
    """``x`` without those of the given axes that have size one; the others stay."""
    axes = (axis,) if isinstance(axis, int) else axis
    return x.squeeze(tuple(a for a in axes if x.ndim and x.shape[a] == 1))


def expand_to(x: jax.Array, size: int | Sequence[int]) -> jax.Array:
    """``x`` repeated without copying to one size or to several; -1 keeps an axis."""
    target = (size,) if isinstance(size, (int, np.integer)) else tuple(size)
    shape = [x.shape[i - len(target)] if s == -1 else s for i, s in enumerate(target)]
    return jnp.broadcast_to(x, shape)


def windows(x: jax.Array, axis: int, size: int, step: int) -> jax.Array:
    """All windows of ``size`` elements along ``axis``, ``step`` apart, their elements on a new last axis."""
    if x.ndim == 0:
        return x[None][:size]
    starts = jnp.arange(0, x.shape[axis] - size + 1, step)
    taken = jnp.take(x, starts[:, None] + jnp.arange(size), axis=axis)
    return jnp.moveaxis(taken, axis % x.ndim + 1, -1)
