"""Search in sorted rows and histograms."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp


def sort_descending(x, axis: int = -1):
    """``x`` sorted from large to small, equal elements in their order, as ``jnp.argsort`` has them.

    ``jnp.sort(x, descending=True)`` gives equal elements their gradients in the reverse order.
    """
    order = jnp.argsort(x, axis=axis, descending=True)
    return jnp.take_along_axis(x, order, axis=axis)


def searchsorted(rows: jax.Array, values: jax.Array, side: str = "left") -> jax.Array:
    """``jnp.searchsorted`` row by row: rows (…, n), values (…, m) → (…, m)."""
    values = jnp.asarray(values)
    if rows.ndim == 1:
        return jnp.searchsorted(rows, values, side=side)
    find = functools.partial(jnp.searchsorted, side=side)
    return jnp.vectorize(find, signature="(n),(m)->(m)")(rows, values)


def histc(x: jax.Array, bins: int, low: float, high: float) -> jax.Array:
    """Counts of ``x`` in equal bins over [low, high]; what lies outside is not counted.

    Equal limits mean the range of the data, or one around a single value (``torch.histc``).
    """
    x = x.reshape(-1)
    if low == high and x.size:
        low, high = jnp.min(x), jnp.max(x)
    single = jnp.asarray(low == high)
    low, high = jnp.where(single, low - 1, low), jnp.where(single, high + 1, high)
    place = jnp.floor((x - low) / (high - low) * bins).astype(jnp.int32)
    place = jnp.where((x >= low) & (x <= high), jnp.minimum(place, bins - 1), bins)
    return jnp.zeros(bins, x.dtype).at[place].add(1, mode="drop")


def _edges(x: jax.Array, count: int, limits: Sequence[float] | None) -> jax.Array:
    """The edges of ``count`` equal bins between limits, or the extremes of ``x``."""
    low, high = limits or ((x.min(), x.max()) if x.size else (0, 1))
    spread = jnp.where(low == high, 0.5, 0)
    return jnp.linspace(low - spread, high + spread, count + 1, dtype=x.dtype)


def histogramdd(
    x: jax.Array,
    bins: int | Sequence[int] | Sequence[jax.Array],
    range: Sequence[float] | None = None,
    weights: jax.Array | None = None,
    density: bool = False,
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Counts of the points (…, d) in a d-dimensional grid, and its edges; ``range`` is low, high of each axis in a
    row (``torch.histogramdd``)."""
    points = x.reshape(-1, x.shape[-1]).T
    sizes = [bins] * len(points) if isinstance(bins, int) else bins
    limits = [None] * len(points) if range is None else zip(range[::2], range[1::2], strict=True)
    edges = tuple(
        _edges(line, size, limit) if isinstance(size, int) else size
        for line, size, limit in zip(points, sizes, limits, strict=True)
    )
    weight = jnp.ones(points.shape[1], x.dtype) if weights is None else weights.reshape(-1)
    places = []
    for line, edge in zip(points, edges, strict=True):
        weight = jnp.where((line >= edge[0]) & (line <= edge[-1]), weight, 0)
        place = jnp.searchsorted(edge, line, side="right") - 1
        places.append(jnp.where(line == edge[-1], len(edge) - 2, place))
    counts = jnp.zeros([len(edge) - 1 for edge in edges], x.dtype).at[tuple(places)].add(weight)
    if density:
        counts = counts / counts.sum()
        for axis, edge in enumerate(edges):
            counts = counts / jnp.diff(edge).reshape(-1, *[1] * (counts.ndim - 1 - axis))
    return counts, edges
