"""scatter_reduce and index_reduce: reductions into indexed places, with torch's gradients."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp


def reduce_at(
    x: jax.Array, place: Any, src: jax.Array, reduce: str, include_self: bool = True
) -> jax.Array:
    """Reduces ``src`` into ``x[place]``; ``reduce`` is sum, prod, mean, amax or amin.

    Without ``include_self`` the places written start from the neutral element. Several sources may meet in
    one place; equal maxima share the gradient (``torch.Tensor.scatter_reduce``).
    """
    if not include_self:
        x = x.at[place].set(_neutral(reduce, x.dtype))
    if x.dtype == jnp.bool_:
        return x.at[place].min(src) if reduce in ("prod", "amin") else x.at[place].max(src)
    if reduce == "prod":
        return _multiply(x, place, src)
    if reduce in ("amax", "amin"):
        return _extreme(x, place, src, reduce == "amax", include_self)
    total = x.at[place].add(src)
    if reduce == "sum":
        return total
    count = jnp.full_like(x, include_self).at[place].add(jnp.ones_like(src))
    count = jnp.maximum(count, 1)
    floating = jnp.issubdtype(x.dtype, jnp.inexact)
    return total / count if floating else total // count


def _neutral(reduce: str, dtype: Any) -> Any:
    if reduce not in ("amax", "amin"):
        return 1 if reduce == "prod" else 0
    if dtype == jnp.bool_:
        return reduce == "amin"
    if jnp.issubdtype(dtype, jnp.floating):
        return -jnp.inf if reduce == "amax" else jnp.inf
    info = jnp.iinfo(dtype)
    return info.min if reduce == "amax" else info.max


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _extreme(x: Any, place: Any, src: Any, largest: bool, include_self: bool) -> jax.Array:
    return x.at[place].max(src) if largest else x.at[place].min(src)


@_extreme.defjvp
def _extreme_jvp(largest: bool, include_self: bool, primals: Any, tangents: Any) -> Any:
    x, place, src = primals
    out = _extreme(x, place, src, largest, include_self)
    own = (x == out).astype(x.dtype)
    if not include_self:
        own = own.at[place].set(0)
    hit = (src == out[place]).astype(x.dtype)
    ties = jnp.maximum(own.at[place].add(hit), 1)
    return out, (own * tangents[0]).at[place].add(hit * tangents[2]) / ties


@jax.custom_jvp
def _multiply(x: Any, place: Any, src: Any) -> jax.Array:
    return x.at[place].multiply(src)


@_multiply.defjvp
def _multiply_jvp(primals: Any, tangents: Any) -> Any:
    x, place, src = primals
    out = _multiply(x, place, src)
    # The derivative by one factor is the product of the others, without dividing by a zero factor.
    others = jnp.where(x == 0, 1, x).at[place].multiply(jnp.where(src == 0, 1, src))
    zeros = (x == 0).astype(jnp.int32).at[place].add((src == 0).astype(jnp.int32))

    def by(factor: Any, product: Any, count: Any) -> Any:
        alone = jnp.where(count == 1, product, 0)
        return jnp.where(
            factor == 0,
            alone,
            jnp.where(count == 0, product, 0) / jnp.where(factor == 0, 1, factor),
        )

    tangent = by(x, others, zeros) * tangents[0]
    return out, tangent.at[place].add(by(src, others[place], zeros[place]) * tangents[2])
