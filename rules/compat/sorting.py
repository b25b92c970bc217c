"""Search in sorted rows and histograms."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp


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


def histogramdd(
    x: jax.Array,
    bins: int | Sequence[int] | Sequence[jax.Array],
    range: Sequence[float] | None = None,
    weights: jax.Array | None = None,
    density: bool = False,
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Counts of the points (…, d) in a d-dimensional grid, and its edges; ``range`` is low, high of each axis in a
    row (``torch.histogramdd``)."""
    points = x.reshape(-1, x.shape[-1])
    limits = None if range is None else list(zip(range[::2], range[1::2], strict=True))
    flat = None if weights is None else weights.reshape(-1)
    bins = bins if isinstance(bins, int) else list(bins)
    counts, edges = jnp.histogramdd(points, bins, limits, flat, density)
    return counts.astype(x.dtype), tuple(edge.astype(x.dtype) for edge in edges)
