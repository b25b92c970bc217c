"""Matrix products, norms and distances: ``torch.matmul`` and its relatives, ``norm``, ``cdist``.

Norms have gradient 0 where they are 0, as in torch; ``jnp.linalg.norm`` gives NaN there.
"""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.linalg import cdist as pairwise_distances
from rules.compat.linalg import l2_norm, matrix_norm, norm, renorm, tensordot, vector_norm
from rules.registry import is_bool, is_float, op, surely


@op(
    "torch.matmul",
    "Tensor.matmul",
    "torch.linalg.matmul",
    "Tensor.__matmul__",
    example={"torch.matmul(x, y)": "x @ y"},
)
def matmul(input, other) -> Tensor:
    """Matrix product with broadcast batch axes."""
    return input @ other


@op("Tensor.__rmatmul__")
def rmatmul(input, other) -> Tensor:
    """The reflected operator."""
    return other @ input


@op("torch.mm", "Tensor.mm", "torch.bmm", "Tensor.bmm", example={"x.bmm(y)": "x @ y"})
def mm(input, mat2, out_dtype=None) -> Tensor["same"]:
    """Product of matrices or of batches of matrices."""
    if out_dtype is not None:
        return jnp.matmul(input, mat2, preferred_element_type=out_dtype)
    return input @ mat2


@op("torch.mv", "Tensor.mv", example={"x.mv(y)": "x @ y"})
def mv(input, vec) -> Tensor:
    """Matrix times vector."""
    return input @ vec


@op("torch.dot", "Tensor.dot", example={"torch.dot(x, y)": "jnp.dot(x, y)"})
def dot(input, tensor) -> Tensor:
    """Product of two vectors, without conjugation."""
    return jnp.dot(input, tensor)


@op("torch.vdot", "Tensor.vdot", example={"torch.vdot(x, y)": "jnp.vdot(x, y)"})
def vdot(input, other) -> Tensor:
    """Product of two vectors, the first conjugated."""
    return jnp.vdot(input, other)


@op("torch.inner", "Tensor.inner", example={"torch.inner(x, y)": "jnp.inner(x, y)"})
def inner(input, other) -> Tensor:
    """Products over the last axes."""
    return jnp.inner(input, other)


@op(
    "torch.outer",
    "Tensor.outer",
    "torch.ger",
    "Tensor.ger",
    example={"torch.outer(x, y)": "jnp.outer(x, y)"},
)
def outer(input, vec2) -> Tensor:
    """All products of the elements of two vectors."""
    return jnp.outer(input, vec2)


@op(
    "torch.addmm",
    "Tensor.addmm",
    example={
        "torch.addmm(x, y, z)": "x + y @ z",
        "torch.addmm(x, y, z, beta=3, alpha=2)": "3 * x + 2 * (y @ z)",
    },
)
def addmm(input, mat1, mat2, *, beta=1, alpha=1) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2); a beta of 0 ignores input, NaN included."""
    known = surely((isinstance(alpha, int) and isinstance(beta, int)) or is_float(input))
    product = mat1 @ mat2
    if alpha != 1:
        product = (alpha if known else jnp.asarray(alpha, input.dtype)) * product
    if beta == 0:
        return product
    if beta != 1:
        return (beta if known else jnp.asarray(beta, input.dtype)) * input + product
    return input + product


@op(
    "torch.addmv",
    "Tensor.addmv",
    example={"torch.addmv(x, y, z)": "x + y @ z"},
)
def addmv(input, mat, vec, *, beta=1, alpha=1) -> Tensor:
    """beta · input + alpha · (mat @ vec)."""
    known = surely((isinstance(alpha, int) and isinstance(beta, int)) or is_float(input))
    product = mat @ vec
    if alpha != 1:
        product = (alpha if known else jnp.asarray(alpha, input.dtype)) * product
    if beta == 0:
        return product
    if beta != 1:
        return (beta if known else jnp.asarray(beta, input.dtype)) * input + product
    return input + product


@op(
    "torch.baddbmm",
    "Tensor.baddbmm",
    example={
        "torch.baddbmm(x, y, z)": "x + y @ z",
        "torch.baddbmm(x, y, z, beta=0, alpha=2)": "2 * (y @ z)",
    },
)
def baddbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """beta · input + alpha · (batch1 @ batch2)."""
    known = surely((isinstance(alpha, int) and isinstance(beta, int)) or is_float(input))
    product = batch1 @ batch2
    if alpha != 1:
        product = (alpha if known else jnp.asarray(alpha, input.dtype)) * product
    if beta == 0:
        return product
    if beta != 1:
        return (beta if known else jnp.asarray(beta, input.dtype)) * input + product
    return input + product


@op(
    "torch.addbmm",
    "Tensor.addbmm",
    example={"torch.addbmm(x, y, z)": 'x + jnp.einsum("bij,bjk->ik", y, z)'},
)
def addbmm(input, batch1, batch2, *, beta=1, alpha=1) -> Tensor:
    """beta · input + alpha · Σ over the batch of batch1 @ batch2."""
    known = surely((isinstance(alpha, int) and isinstance(beta, int)) or is_float(input))
    product = jnp.einsum("bij,bjk->ik", batch1, batch2)
    if alpha != 1:
        product = (alpha if known else jnp.asarray(alpha, input.dtype)) * product
    if beta == 0:
        return product
    if beta != 1:
        return (beta if known else jnp.asarray(beta, input.dtype)) * input + product
    return input + product


@op(
    "torch.addr",
    "Tensor.addr",
    example={"torch.addr(x, y, z)": "x + jnp.outer(y, z)"},
)
def addr(input, vec1, vec2, *, beta=1, alpha=1) -> Tensor:
    """beta · input + alpha · (vec1 ⊗ vec2)."""
    known = surely((isinstance(alpha, int) and isinstance(beta, int)) or is_float(input))
    if surely(is_bool(input)):
        alpha, beta = bool(alpha), bool(beta)
    product = jnp.outer(vec1, vec2)
    if alpha != 1:
        product = (alpha if known else jnp.asarray(alpha, input.dtype)) * product
    if beta == 0:
        return product
    if beta != 1:
        return (beta if known else jnp.asarray(beta, input.dtype)) * input + product
    return input + product


@op(
    "torch.chain_matmul",
    example={"torch.chain_matmul(x, y, z)": "jnp.linalg.multi_dot((x, y, z))"},
)
def chain_matmul(*matrices) -> Tensor:
    """Product of several matrices in the cheapest order."""
    return jnp.linalg.multi_dot(matrices)


@op(
    "torch.linalg.multi_dot",
    example={"torch.linalg.multi_dot((x, y, z))": "jnp.linalg.multi_dot((x, y, z))"},
)
def multi_dot(tensors) -> Tensor:
    """Product of several matrices in the cheapest order."""
    return jnp.linalg.multi_dot(tensors)


@op(
    "torch.tensordot",
    example={
        "torch.tensordot(x, y)": "jnp.tensordot(x, y)",
        "torch.tensordot(x, y, dims=([1], [0]))": "tensordot(x, y, ([1], [0]))",
    },
)
def tensor_product(a, b, dims=2) -> Tensor:
    """Product summed over the given axes of both."""
    if isinstance(dims, int):
        return jnp.tensordot(a, b, axes=dims)
    return tensordot(a, b, dims)


@op("torch.kron", "Tensor.kron", example={"torch.kron(x, y)": "jnp.kron(x, y)"})
def kron(input, other) -> Tensor:
    """Kronecker product."""
    if surely(is_bool(input)):
        return jnp.kron(input.astype(jnp.int8), other.astype(jnp.int8)) > 0
    return jnp.kron(input, other)


@op("torch.cross", "Tensor.cross", example={"torch.cross(x, y, dim=1)": "jnp.cross(x, y, axis=1)"})
def cross(input, other, dim=None) -> Tensor:
    """Cross product over ``dim``, by default the first axis of size 3."""
    if dim is None:
        dim = input.shape.index(3)
    return jnp.cross(input, other, axis=dim)


@op(
    "torch.linalg.cross",
    example={"torch.linalg.cross(x, y)": "jnp.cross(x, y)"},
)
def linalg_cross(input, other, *, dim=-1) -> Tensor:
    """Cross product over ``dim``."""
    if dim == -1:
        return jnp.cross(input, other)
    return jnp.cross(input, other, axis=dim)


@op(
    "torch.linalg.vecdot",
    example={"torch.linalg.vecdot(x, y)": "jnp.vecdot(x, y)"},
)
def vecdot(x, y, *, dim=-1) -> Tensor:
    """Products over one axis, the first argument conjugated."""
    return jnp.vecdot(x, y, axis=dim)


@op(
    "torch.norm",
    "Tensor.norm",
    example={
        "x.norm()": "l2_norm(x)",
        "torch.norm(x, dim=-1, keepdim=True)": "l2_norm(x, axis=-1, keepdims=True)",
        "x.norm(1, 0)": "vector_norm(x, 1, axis=0)",
    },
)
def tensor_norm(input, p="fro", dim=None, keepdim=False, dtype=None) -> Tensor["float"]:
    """p-norm over ``dim``; "fro" is the 2-norm of all elements."""
    if dtype is not None:
        input = input.astype(dtype)
    if surely(input.ndim == 0):
        dim = None
    if p == "nuc":
        return matrix_norm(input, "nuc", axis=(0, 1) if dim is None else dim, keepdims=keepdim)
    if p == "fro" or p == 2 or p is None:
        return l2_norm(input, axis=dim, keepdims=keepdim)
    return vector_norm(input, p, axis=dim, keepdims=keepdim)


@op(
    "torch.linalg.vector_norm",
    example={
        "torch.linalg.vector_norm(x, dim=-1)": "l2_norm(x, axis=-1)",
        "torch.linalg.vector_norm(x, ord=1)": "vector_norm(x, 1)",
    },
)
def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None) -> Tensor["float"]:
    """Norm of vectors."""
    if dtype is not None:
        x = x.astype(dtype)
    if surely(x.ndim == 0):
        dim = None
    if ord == 2:
        return l2_norm(x, axis=dim, keepdims=keepdim)
    return vector_norm(x, ord, axis=dim, keepdims=keepdim)


@op(
    "torch.linalg.matrix_norm",
    example={"torch.linalg.matrix_norm(x)": "l2_norm(x, axis=(-2, -1))"},
)
def linalg_matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None) -> Tensor["float"]:
    """Norm of matrices."""
    if dtype is not None:
        A = A.astype(dtype)
    if ord == "fro":
        return l2_norm(A, axis=dim, keepdims=keepdim)
    return matrix_norm(A, ord, axis=tuple(dim), keepdims=keepdim)


@op(
    "torch.linalg.norm",
    example={
        "torch.linalg.norm(x, dim=-1)": "l2_norm(x, axis=-1)",
        "torch.linalg.norm(x, 1, dim=0)": "norm(x, 1, axis=0)",
    },
)
def linalg_norm(A, ord=None, dim=None, keepdim=False, *, dtype=None) -> Tensor["float"]:
    """Norm of vectors (one axis) or matrices (two); without ``ord`` of all elements."""
    if dtype is not None:
        A = A.astype(dtype)
    if ord is None:
        return l2_norm(A, axis=dim, keepdims=keepdim)
    return norm(A, ord, axis=dim, keepdims=keepdim)


@op("torch.dist", "Tensor.dist", example={"torch.dist(x, y)": "l2_norm(x - y)"})
def dist(input, other, p=2) -> Tensor["float"]:
    """p-norm of the difference of all elements."""
    if p == 2:
        return l2_norm(input - other)
    return vector_norm(input - other, p)


@op("torch.cdist", example={"torch.cdist(x, y)": "cdist(x, y)"})
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary") -> Tensor["float"]:
    """p-norm distance of all pairs of rows."""
    return pairwise_distances(x1, x2, p=p)


@op("torch.renorm", "Tensor.renorm", example={"x.renorm(2, 0, 1.0)": "renorm(x, 2, 0, 1.0)"})
def renorm_slices(input, p, dim, maxnorm) -> Tensor["same"]:
    """Slices of ``dim`` scaled down to a largest p-norm."""
    return renorm(input, p, dim, maxnorm)
