"""Changes of shape that JAX lacks."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def squeeze(x: jax.Array, axis: int | tuple[int, ...]) -> jax.Array:
    """``x`` without those of the given axes that have size one; the others stay."""
    axes = (axis,) if isinstance(axis, int) else axis
    return x.squeeze(tuple(a for a in axes if x.ndim and x.shape[a] == 1))


def windows(x: jax.Array, axis: int, size: int, step: int) -> jax.Array:
    """All windows of ``size`` elements along ``axis``, ``step`` apart, their elements on a new last axis."""
    if x.ndim == 0:
        return x[None][:size]
    starts = jnp.arange(0, x.shape[axis] - size + 1, step)
    taken = jnp.take(x, starts[:, None] + jnp.arange(size), axis=axis)
    return jnp.moveaxis(taken, axis % x.ndim + 1, -1)
