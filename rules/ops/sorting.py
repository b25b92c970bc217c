"""Sorting and searching: sort, topk, kthvalue, searchsorted, histc.

Equal elements: a stable order is one of those torch may give. NaN counts as the largest value in both.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.compat.sorting import histc as histogram_counts
from rules.compat.sorting import histogramdd, sort_descending
from rules.compat.sorting import searchsorted as search_rows
from rules.registry import op, surely, unsupported


@op(
    "torch.sort",
    "Tensor.sort",
    fields=("values", "indices"),
    example={"torch.sort(x, dim=1)": "(jnp.sort(x, axis=1), jnp.argsort(x, axis=1))"},
)
def sort(
    input, dim: int = -1, descending: bool = False, stable: bool = False
) -> tuple[Tensor["same"], Tensor["int"]]:
    """The sorted values and where they were."""
    if surely(input.ndim == 0):
        return input, jnp.zeros((), int)
    return (
        sort_descending(input, axis=dim) if descending else jnp.sort(input, axis=dim),
        jnp.argsort(input, axis=dim, descending=descending),
    )


@op(
    "torch.argsort",
    "Tensor.argsort",
    example={"x.argsort(dim=1, descending=True)": "jnp.argsort(x, axis=1, descending=True)"},
)
def argsort(input, dim=-1, descending=False, stable=False) -> Tensor["int"]:
    """Where the sorted values were."""
    if surely(input.ndim == 0):
        return jnp.zeros((), int)
    return jnp.argsort(input, axis=dim, descending=descending)


@op("torch.msort", "Tensor.msort", example={"torch.msort(x)": "jnp.sort(x, axis=0)"})
def msort(input) -> Tensor["same"]:
    """Sorted along the first axis."""
    if surely(input.ndim == 0):
        return input
    return jnp.sort(input, axis=0)


@op(
    "torch.topk",
    "Tensor.topk",
    fields=("values", "indices"),
    example={
        "x.topk(2)": "lax.top_k(x, 2)",
        "torch.topk(x, 2, dim=1)": "lax.top_k(x, 2, axis=1)",
    },
)
def topk(input, k, dim=-1, largest=True, sorted=True) -> tuple[Tensor["same"], Tensor["int"]]:
    """The k largest (smallest) values and where they were."""
    if surely(input.ndim == 0):
        return input, jnp.zeros((), int)
    if largest:
        return lax.top_k(input, k, axis=dim)
    indices = lax.slice_in_dim(jnp.argsort(input, axis=dim), 0, k, axis=dim)
    return jnp.take_along_axis(input, indices, axis=dim), indices


@op(
    "torch.kthvalue",
    "Tensor.kthvalue",
    fields=("values", "indices"),
    example={"x.kthvalue(2)": "kthvalue(x, 2)"},
)
def kthvalue(input, k, dim=-1, keepdim=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The k-th smallest value, counted from 1, and where it was."""
    if surely(input.ndim == 0):
        return input, jnp.zeros((), int)
    indices = lax.slice_in_dim(jnp.argsort(input, axis=dim), k - 1, k, axis=dim)
    values = jnp.take_along_axis(input, indices, axis=dim)
    if keepdim:
        return values, indices
    return values.squeeze(dim), indices.squeeze(dim)


@op(
    "torch.searchsorted",
    example={"torch.searchsorted(x, y)": "searchsorted(x, y)"},
)
def searchsorted(
    sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None
) -> Tensor["int"]:
    """Where each value would be inserted in its sorted row."""
    if sorter is not None:
        sorted_sequence = jnp.take_along_axis(sorted_sequence, sorter, axis=-1)
    places = search_rows(
        sorted_sequence, input, side="right" if right or side == "right" else "left"
    )
    if out_int32:
        return places.astype(jnp.int32)
    return places


@op(
    "torch.bucketize",
    example={
        "torch.bucketize(x, y)": "jnp.searchsorted(y, x)",
        "torch.bucketize(x, y, right=True)": 'jnp.searchsorted(y, x, side="right")',
    },
)
def bucketize(input, boundaries, *, out_int32=False, right=False) -> Tensor["int"]:
    """The bucket of each value between sorted boundaries."""
    places = jnp.searchsorted(boundaries, input, side="right" if right else "left")
    if out_int32:
        return places.astype(jnp.int32)
    return places


@op(
    "torch.histc",
    "Tensor.histc",
    example={"torch.histc(x, bins=4, min=0, max=1)": "histc(x, 4, 0, 1)"},
)
def histc(input, bins=100, min=0, max=0) -> Tensor["same"]:
    """Counts in equal bins over [min, max]; equal limits mean the range of the data."""
    return histogram_counts(input, bins, min, max)


@op(
    "torch.histogram",
    "Tensor.histogram",
    fields=("hist", "bin_edges"),
    example={"torch.histogram(x, 4)": "jnp.histogram(x.reshape(-1), 4, density=False)"},
)
def histogram(
    input, bins: int, *, range=None, weight=None, density=False
) -> tuple[Tensor["same"], Tensor["same"]]:
    """Weighted counts in equal bins, and the edges of the bins."""
    if surely(input.size == 0) and range is None:
        range = (0, 1)
    return jnp.histogram(
        input.reshape(-1),
        bins,
        range=range,
        weights=None if weight is None else weight.reshape(-1),
        density=density,
    )


@op(
    "torch.histogram",
    "Tensor.histogram",
    fields=("hist", "bin_edges"),
    example={"torch.histogram(x, y)": "jnp.histogram(x.reshape(-1), y, density=False)"},
)
def histogram_edges(
    input, bins: Tensor, *, weight=None, density=False
) -> tuple[Tensor["same"], Tensor["same"]]:
    """Weighted counts between given edges, and the edges."""
    weights = None if weight is None else weight.reshape(-1)
    return jnp.histogram(input.reshape(-1), bins, weights=weights, density=density)


@op(
    "torch.histogramdd",
    fields=("hist", "bin_edges"),
    example={"torch.histogramdd(x, [2, 3])": "histogramdd(x, [2, 3])"},
)
def histogram_of_points(
    input, bins, *, range=None, weight=None, density=False
) -> tuple[Tensor["same"], tuple[Tensor["same"], ...]]:
    """Weighted counts of points (…, d) in the cells of a grid, and the edges along each axis."""
    return histogramdd(input, bins, range=range, weights=weight, density=density)


@op("torch.bincount", "Tensor.bincount")
def bincount(input, weights=None, minlength=0) -> Tensor:
    """Refused: the length is one more than the largest value."""
    unsupported(
        "bincount has a length that depends on the data (minlength is only a lower bound); "
        "where n bounds the values write jnp.bincount(x, length=n)"
    )
