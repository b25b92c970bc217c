"""torch.nn.functional, linear functions."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.registry import op, unsupported


@op(
    "torch.nn.functional.linear",
    example={"F.linear(x, y)": "x @ y.T", "F.linear(x, y, z)": "x @ y.T + z"},
)
def linear(input, weight, bias=None) -> Tensor["same"]:
    """input · weightᵀ + bias, with weight (out, in)."""
    if bias is None:
        return input @ weight.T
    return input @ weight.T + bias


@op(
    "torch.nn.functional.bilinear",
    "torch.bilinear",
    example={"F.bilinear(x, y, z)": "jnp.einsum('...i,oij,...j->...o', x, z, y)"},
)
def bilinear(input1, input2, weight, bias=None) -> Tensor["same"]:
    """x1ᵀ A x2 + bias: (…, I), (…, J), (O, I, J) → (…, O)."""
    if bias is None:
        return jnp.einsum("...i,oij,...j->...o", input1, weight, input2)
    return jnp.einsum("...i,oij,...j->...o", input1, weight, input2) + bias


@op(
    "torch.nn.functional.grouped_mm",
    "torch._grouped_mm",
    example={"F.grouped_mm(x, y)": "x @ y"},
)
def grouped_mm(mat_a, mat_b, offs=None, bias=None, out_dtype=None) -> Tensor["same"]:
    """Batched product of the groups; the rows of a matrix are in groups that end at ``offs``."""
    if bias is not None or out_dtype is not None:
        unsupported("bias and out_dtype of grouped_mm")
    if offs is None:
        return mat_a @ mat_b
    if mat_a.ndim != 2 or mat_b.ndim != 3:
        unsupported("groups of columns: use jax.lax.ragged_dot_general")
    return lax.ragged_dot(mat_a, mat_b, jnp.diff(offs, prepend=0))


@op("torch.nn.functional.scaled_mm", "torch.nn.functional.scaled_grouped_mm")
def scaled_mm(*args, **kwargs) -> Tensor:
    """Float8 products with scaling recipes."""
    unsupported("scaled float8 products: use jax.nn.scaled_matmul")
