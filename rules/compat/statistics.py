"""Finite differences and reductions of consecutive segments."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from rules.compat.scatter_reduce import reduce_at


def _difference(x: jax.Array, place: jax.Array, order: int) -> jax.Array:
    """Differences of the first axis at coordinates ``place`` (n,), of first or second order at the edges."""
    step = jnp.diff(place).reshape(-1, *[1] * (x.ndim - 1))
    slope = jnp.diff(x, axis=0) / step
    before, after = step[:-1], step[1:]
    middle = (slope[:-1] * after + slope[1:] * before) / (before + after)
    first, last = slope[:1], slope[-1:]
    if order == 2:
        first = first + (slope[:1] - slope[1:2]) * step[:1] / (step[:1] + step[1:2])
        last = last + (slope[-1:] - slope[-2:-1]) * step[-1:] / (step[-1:] + step[-2:-1])
    return jnp.concatenate([first, middle, last])


def gradient(
    x: jax.Array,
    spacing: float | Sequence[float] | Sequence[jax.Array] = 1,
    axis: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[jax.Array, ...]:
    """``torch.gradient``: one array for each axis; ``spacing`` is a step or the coordinates of an axis."""
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(axes)
    found = []
    for each, step in zip(axes, steps, strict=True):
        place = (
            step if jnp.ndim(step) == 1 else step * jnp.arange(x.shape[each], dtype=x.real.dtype)
        )
        rows = jnp.moveaxis(x, each, 0)
        found.append(jnp.moveaxis(_difference(rows, place, edge_order), 0, each))
    return tuple(found)


def offsets_of(lengths: jax.Array) -> jax.Array:
    """Where segments of these lengths (…, k) begin, and the end of the last: (…, k + 1)."""
    ends = jnp.cumsum(lengths, axis=-1)
    return jnp.concatenate([jnp.zeros_like(ends[..., :1]), ends], axis=-1)


def segment_reduce(
    x: jax.Array,
    reduce: str,
    offsets: jax.Array,
    initial: float | None = None,
    axis: int = 0,
) -> jax.Array:
    """Reduces the segments of ``x`` (n, …) between consecutive offsets (k + 1,) → (k, …).

    With ``axis`` the axes before it have offsets of their own: x (…, n, …), offsets (…, k + 1) → (…, k, …)."""
    if axis:
        inner = lambda part, at: segment_reduce(part, reduce, at, initial, axis - 1)
        return jax.vmap(inner)(x, offsets)
    count = offsets.shape[0] - 1
    segment = jnp.searchsorted(offsets, jnp.arange(x.shape[0]), side="right") - 1
    segment = jnp.where(segment < 0, count, segment)  # out of range: dropped below
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    empty = {"sum": 0, "prod": 1, "mean": jnp.nan, "amax": -jnp.inf, "amin": jnp.inf}[reduce]
    start = jnp.full((count, *x.shape[1:]), empty if initial is None else initial, x.dtype)
    if reduce == "mean":
        total = jnp.full_like(start, initial or 0).at[segment].add(x)
        size = jnp.diff(offsets).reshape(-1, *[1] * (x.ndim - 1))
        return jnp.where(size == 0, start, total / jnp.maximum(size, 1))
    return reduce_at(start, segment, x, reduce)
