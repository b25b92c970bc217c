"""What the reductions of ``torch.masked`` share."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.linalg import vector_norm


def masked(x: jax.Array, mask: jax.Array | None, fill: float, dtype=None) -> jax.Array:
    """``x`` with ``fill`` (its integer bound for ±inf) where ``mask`` is False; any shapes that broadcast."""
    x = x if dtype is None else x.astype(dtype)
    if jnp.issubdtype(x.dtype, jnp.integer) and abs(fill) == jnp.inf:
        bounds = jnp.iinfo(x.dtype)
        fill = bounds.max if fill > 0 else bounds.min
    return x if mask is None else jnp.where(mask, x, jnp.asarray(fill, x.dtype))


def masked_moment(
    x, mask, order: int, axis=None, ddof=0, keepdims: bool = False, dtype=None
) -> jax.Array:
    """Mean (order 1) or variance (order 2, divided by n - ddof) over ``axis`` of the elements under ``mask``."""
    x = x if dtype is None else x.astype(dtype)
    x = x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32)
    mask = jnp.broadcast_to(True if mask is None else mask, x.shape)
    count = mask.sum(axis=axis, keepdims=True).astype(x.real.dtype)
    mean = jnp.where(mask, x, 0).sum(axis=axis, keepdims=True) / count
    if order == 2:
        square = jnp.square(jnp.abs(jnp.where(mask, x - mean, 0)))
        mean = square.sum(axis=axis, keepdims=True) / jnp.maximum(count - ddof, 0)
    return mean if keepdims else mean.squeeze(axis)


def masked_norm(x, mask, ord=2, axis=None, keepdims: bool = False, dtype=None) -> jax.Array:
    """p-norm over ``axis`` of the elements under ``mask``; for ord -inf the others count as inf."""
    fill = jnp.inf if ord == -jnp.inf else 0
    return vector_norm(masked(x, mask, fill, dtype), ord, axis=axis, keepdims=keepdims)
