"""Reductions whose values or gradients JAX defines differently from torch."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax


def std_safe(x: jax.Array, axis=None, correction=1, keepdims: bool = False) -> jax.Array:
    """Standard deviation with n - correction degrees of freedom; its gradient is 0 where it is 0."""
    var = jnp.var(x, axis=axis, ddof=correction, keepdims=keepdims)
    return jnp.where(var == 0, 0, jnp.sqrt(jnp.where(var == 0, 1, var)))


def max_along(x: jax.Array, axis: int, keepdims: bool = False) -> jax.Array:
    """Largest elements along ``axis``; of equal ones the first has all the gradient."""
    values = jnp.take_along_axis(x, x.argmax(axis=axis, keepdims=True), axis=axis)
    return values if keepdims else values.squeeze(axis)


def min_along(x: jax.Array, axis: int, keepdims: bool = False) -> jax.Array:
    """Smallest elements along ``axis``; of equal ones the first has all the gradient."""
    values = jnp.take_along_axis(x, x.argmin(axis=axis, keepdims=True), axis=axis)
    return values if keepdims else values.squeeze(axis)


def lower_median(
    x: jax.Array, axis: int | None = None, keepdims: bool = False, ignore_nan: bool = False
) -> tuple[jax.Array, jax.Array]:
    """Median along ``axis`` (all elements if None) and its index; of an even number the lower middle."""
    if axis is None:
        x, axis, keepdims = x.reshape(-1), 0, False
    order = jnp.argsort(x, axis=axis)
    nans = jnp.isnan(x).sum(axis=axis, keepdims=True)
    count = x.shape[axis] - nans
    middle = jnp.where(nans > 0, count, (count - 1) // 2) if not ignore_nan else (count - 1) // 2
    index = jnp.take_along_axis(order, jnp.maximum(middle, 0), axis=axis)
    values = jnp.take_along_axis(x, index, axis=axis)
    if keepdims:
        return values, index
    return values.squeeze(axis), index.squeeze(axis)


def median_of_elements(x: jax.Array, ignore_nan: bool = False) -> jax.Array:
    """Lower median of all elements, 0-d; its gradient is spread evenly over all that are equal to it.

    As torch's ``evenly_distribute_backward`` (torch/csrc/autograd/FunctionsManual.cpp) does.
    """

    @jax.custom_jvp
    def median(x):
        return lower_median(x, ignore_nan=ignore_nan)[0]

    @median.defjvp
    def spread(primals, tangents):
        (x,), (change,) = primals, tangents
        value = median(x)
        equal = (x == value) | (jnp.isnan(x) & jnp.isnan(value))
        return value, jnp.where(equal, change, 0).sum() / equal.sum().astype(x.dtype)

    if not jnp.issubdtype(x.dtype, jnp.inexact):
        return lower_median(x)[0]
    return median(x)


def most_frequent(
    x: jax.Array, axis: int = -1, keepdims: bool = False
) -> tuple[jax.Array, jax.Array]:
    """The most frequent value along ``axis``, the smallest of several, and the index where it last occurs."""
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    x = jnp.moveaxis(x, axis, -1)
    counts = (x[..., :, None] == x[..., None, :]).sum(axis=-1)
    candidates = counts == counts.max(axis=-1, keepdims=True)
    big = x.max(axis=-1, keepdims=True)
    best = jnp.where(candidates, x, big).min(axis=-1, keepdims=True)
    last = x.shape[-1] - 1 - jnp.argmax((x == best)[..., ::-1], axis=-1, keepdims=True)
    values = jnp.take_along_axis(x, last, axis=-1)
    values, last = jnp.moveaxis(values, -1, axis), jnp.moveaxis(last, -1, axis)
    return (values, last) if keepdims else (values.squeeze(axis), last.squeeze(axis))


def cumulative_index(
    x: jax.Array, axis: int, better: Callable[[jax.Array, jax.Array], jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """Running extreme along ``axis`` and the index where it was last seen; NaN wins and stays."""
    if x.ndim == 0:
        return x, jnp.zeros((), int)
    axis %= x.ndim
    index = lax.broadcasted_iota(int, x.shape, axis)

    def pick(a, b):
        take = better(b[0], a[0]) & ~jnp.isnan(a[0]) | jnp.isnan(b[0])
        return jnp.where(take, b[0], a[0]), jnp.where(take, b[1], a[1])

    _, index = lax.associative_scan(pick, (x, index), axis=axis)
    return jnp.take_along_axis(x, index, axis=axis), index
