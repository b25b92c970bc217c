"""What is written to a part of a tensor."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def fitting(value, place):
    """``value`` without the leading axes of one element that ``place`` has not: torch leaves them out."""
    return value.reshape(value.shape[max(value.ndim - place.ndim, 0) :])


def set_each(place, value):
    """``place.set(value)`` of ``place = x.at[index]`` whose index may list a place several times.

    As in torch each of the values that are written there has the gradient of that place; in JAX the one that stays.
    """
    constant = jax.lax.stop_gradient(value)
    zero = jnp.where(jnp.isfinite(value), value - constant, 0)
    return place.set(constant).at[place.index].add(zero)
