"""Covariance, finite differences, reductions of segments, flat and nested indices."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.statistics import gradient as finite_differences
from rules.compat.statistics import offsets_of
from rules.compat.statistics import segment_reduce as reduce_segments
from rules.registry import op, surely, unsupported


@op("torch.cov", "Tensor.cov", example={"torch.cov(x)": "jnp.cov(x)"})
def cov(input, *, correction=1, fweights=None, aweights=None) -> Tensor:
    """Covariance matrix of variables in rows."""
    if correction == 1:
        return jnp.cov(input, fweights=fweights, aweights=aweights)
    return jnp.cov(input, ddof=correction, fweights=fweights, aweights=aweights)


@op("torch.corrcoef", "Tensor.corrcoef", example={"torch.corrcoef(x)": "jnp.corrcoef(x)"})
def corrcoef(input) -> Tensor:
    """Correlation matrix of variables in rows."""
    if surely(input.ndim == 0 or input.size == 0):
        return jnp.full((), jnp.nan, input.dtype)
    return jnp.corrcoef(input)


@op(
    "torch.gradient",
    example={"torch.gradient(x, dim=0)": "gradient(x, axis=0)"},
)
def gradient(input, *, spacing=None, dim=None, edge_order=1) -> tuple[Tensor, ...]:
    """Central differences along each axis."""
    return finite_differences(
        input, spacing=1 if spacing is None else spacing, axis=dim, edge_order=edge_order
    )


@op(
    "torch.unravel_index",
    example={"torch.unravel_index(i, (2, 3))": "jnp.unravel_index(i, (2, 3))"},
)
def unravel_index(indices, shape) -> tuple[Tensor["int"], ...]:
    """The index on each axis of a flat index."""
    if isinstance(shape, int):
        return jnp.unravel_index(indices, (shape,))
    return jnp.unravel_index(indices, shape)


@op(
    "torch.segment_reduce",
    "torch._segment_reduce",
    example={'torch.segment_reduce(x, "sum", offsets=i)': 'segment_reduce(x, "sum", i, None)'},
)
def segment_reduce(
    data,
    reduce,
    *,
    lengths=None,
    indices=None,
    offsets=None,
    axis=0,
    unsafe=False,
    initial=None,
) -> Tensor["float"]:
    """Sum, mean, max, min or product of each of several consecutive segments of an axis."""
    if indices is not None:
        unsupported("segment_reduce by indices")
    if offsets is None:
        offsets = offsets_of(lengths)
    if axis == 0:
        return reduce_segments(data, reduce, offsets, initial)
    return reduce_segments(data, reduce, offsets, initial, axis=axis)
