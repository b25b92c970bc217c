"""Writing diagonals and slices of any axes."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def _places(rows: int, columns: int, offset: int) -> tuple[jax.Array, jax.Array]:
    """Row and column of each element of a diagonal."""
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    place = jnp.arange(length)
    return place - min(offset, 0), place + max(offset, 0)


def diagonal_scatter(
    x: jax.Array, src: jax.Array, offset: int = 0, axis1: int = 0, axis2: int = 1
) -> jax.Array:
    """``x`` with ``src`` (…, k) on the diagonals of two axes."""
    x = jnp.moveaxis(x, (axis1, axis2), (-2, -1))
    x = x.at[(..., *_places(*x.shape[-2:], offset))].set(src)
    return jnp.moveaxis(x, (-2, -1), (axis1, axis2))


def diag_embed(x: jax.Array, offset: int = 0, axis1: int = -2, axis2: int = -1) -> jax.Array:
    """Matrices on two new axes with the last axis of ``x`` (…, k) on their diagonals."""
    size = x.shape[-1] + abs(offset)
    matrices = jnp.zeros((*x.shape[:-1], size, size), x.dtype)
    matrices = matrices.at[(..., *_places(size, size, offset))].set(x)
    return jnp.moveaxis(matrices, (-2, -1), (axis1, axis2))


def slice_scatter(
    x: jax.Array,
    src: jax.Array,
    axis: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> jax.Array:
    """``x`` with ``src`` in start:end:step of one axis."""
    rows = jnp.moveaxis(x, axis, 0).at[start:end:step].set(jnp.moveaxis(src, axis, 0))
    return jnp.moveaxis(rows, 0, axis)
