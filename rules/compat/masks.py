"""Selections by a mask over the leading axes."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def where_leading(mask, value, x):
    """``x`` with ``value`` where a mask over x's leading axes holds, as in torch's ``x[mask] = value``.

    Shapes: mask ``x.shape[:k]``; value a scalar or of x's shape; result x.shape, dtype of x.
    """
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, jnp.asarray(value, x.dtype), x)


def only_where(mask, x):
    """``x``, which gets a gradient where a mask over its leading axes holds and none elsewhere.

    What is computed of it elsewhere, and left out by a ``jnp.where``, may be infinite: its gradient would be NaN.
    Shapes: mask ``x.shape[:k]``, or any where x is a single number; result that of x, then of mask.
    """
    if jnp.ndim(x) == 0:
        x = jnp.broadcast_to(x, mask.shape)
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, x, lax.stop_gradient(x))


def masked_sum(x, mask):
    """Sum of all that a mask over x's leading axes selects, torch's ``x[mask].sum()``."""
    return jnp.sum(x, where=mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)))


def masked_mean(x, mask):
    """Mean of all that a mask over x's leading axes selects, torch's ``x[mask].mean()``: NaN if that is nothing."""
    return jnp.mean(x, where=mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)))


def masked_loss(loss, input, target, mask, reduction="mean"):
    """Mean or sum of a loss of each element over what a mask over the leading axes selects: NaN as the mean of nothing.

    torch's ``loss(input[mask], target[mask])``; what is not selected is 0 in both, so that no slope is lost to it.
    """

    def rows(x):
        x = x.reshape(mask.size, *x.shape[mask.ndim :])
        return jnp.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)

    each = loss(rows(input), rows(target), reduction="none")
    reduced = jnp.mean if reduction == "mean" else jnp.sum
    return reduced(each, where=mask.reshape(-1, *(1,) * (each.ndim - 1)))


def selected_mean(x, mask):
    """Mean of all that a mask selects, torch's ``masked_select(x, mask).mean()``: NaN if that is nothing."""
    x, mask = jnp.broadcast_arrays(x, mask)
    return jnp.mean(x, where=mask)


def selected_sum(x, mask):
    """Sum of all that a mask selects, torch's ``masked_select(x, mask).sum()``."""
    x, mask = jnp.broadcast_arrays(x, mask)
    return jnp.sum(x, where=mask)


def set_at(x, index, value):
    """``x[index] = value`` for a number, where the index is a boolean mask or holds positions."""
    if index.dtype == bool:
        return where_leading(index, value, x)
    return x.at[index].set(value)
