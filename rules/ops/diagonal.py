"""Diagonals, and slices replaced without writing in place."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.diagonal import diag_embed, diagonal_scatter, slice_scatter
from rules.registry import op


@op("torch.diag", "Tensor.diag", example={"torch.diag(x)": "jnp.diag(x)"})
def diag(input, diagonal=0) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix."""
    return jnp.diag(input, k=diagonal)


@op("torch.diagflat", "Tensor.diagflat", example={"torch.diagflat(x)": "jnp.diagflat(x)"})
def diagflat(input, offset=0) -> Tensor:
    """The matrix with all elements on its diagonal."""
    return jnp.diagflat(input, k=offset)


@op(
    "torch.diagonal",
    "Tensor.diagonal",
    "torch.diagonal_copy",
    example={
        "x.diagonal()": "jnp.diagonal(x)",
        "x.diagonal(dim1=-2, dim2=-1)": "jnp.diagonal(x, axis1=-2, axis2=-1)",
    },
)
def diagonal(input, offset=0, dim1=0, dim2=1) -> Tensor:
    """The diagonals of two axes, as a new last axis (a copy, no view)."""
    return jnp.diagonal(input, offset=offset, axis1=dim1, axis2=dim2)


@op("torch.diag_embed", "Tensor.diag_embed", example={"torch.diag_embed(x)": "diag_embed(x)"})
def embed(input, offset=0, dim1=-2, dim2=-1) -> Tensor:
    """Matrices with the last axis on their diagonals."""
    return diag_embed(input, offset=offset, axis1=dim1, axis2=dim2)


@op("torch.trace", "Tensor.trace", example={"torch.trace(x)": "jnp.trace(x)"})
def trace(input) -> Tensor:
    """Sum of the diagonal of a matrix."""
    return jnp.trace(input)


@op(
    "Tensor.fill_diagonal_",
    example={"x.fill_diagonal_(0)": "jnp.fill_diagonal(x, 0, inplace=False)"},
)
def fill_diagonal_(input, fill_value, wrap=False) -> Tensor["same"]:
    """The matrix with one number on its diagonal."""
    return jnp.fill_diagonal(input, fill_value, wrap=wrap, inplace=False)


@op(
    "torch.diagonal_scatter",
    "Tensor.diagonal_scatter",
    example={"torch.diagonal_scatter(x, y)": "diagonal_scatter(x, y)"},
)
def scatter_diagonal(input, src, offset=0, dim1=0, dim2=1) -> Tensor["same"]:
    """The tensor with another diagonal."""
    return diagonal_scatter(input, src, offset=offset, axis1=dim1, axis2=dim2)


@op(
    "torch.select_scatter",
    "Tensor.select_scatter",
    example={"torch.select_scatter(x, y, 1, 0)": "x.at[:, 0].set(y)"},
)
def select_scatter(input, src, dim, index) -> Tensor["same"]:
    """The tensor with ``input.select(dim, index)`` replaced."""
    if dim >= 0:
        return input.at[(slice(None),) * dim + (index,)].set(src)
    return input.at[(..., index) + (slice(None),) * (-dim - 1)].set(src)


@op(
    "torch.slice_scatter",
    "Tensor.slice_scatter",
    example={"torch.slice_scatter(x, y, 1, 2)": "slice_scatter(x, y, axis=1, start=2)"},
)
def replace_slice(input, src, dim=0, start=None, end=None, step=1) -> Tensor["same"]:
    """The tensor with ``input[start:end:step]`` of an axis replaced."""
    return slice_scatter(input, src, axis=dim, start=start, end=end, step=step)
