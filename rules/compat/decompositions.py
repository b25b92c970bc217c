"""Solvers and factorisations with torch's batching, pivots and status results."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def _is_vector(a: jax.Array, b: jax.Array) -> bool:
    """Whether ``b`` holds one right-hand side per matrix, as ``torch.linalg.solve`` decides it."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


def logdet(x: jax.Array) -> jax.Array:
    """Logarithm of the determinant, which may itself be out of range; NaN where it is negative."""
    sign, size = jnp.linalg.slogdet(x)
    if jnp.iscomplexobj(x):
        return size + jnp.log(sign)
    return jnp.where(sign < 0, jnp.nan, size)


def solve(a: jax.Array, b: jax.Array, left: bool = True) -> jax.Array:
    """X with a @ X = b (left) or X @ a = b, batch axes broadcast (``torch.linalg.solve``)."""
    if not left:
        return solve(a.mT, b.mT).mT
    if _is_vector(a, b):
        return solve(a, b[..., None])[..., 0]
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, batch + a.shape[-2:])
    return jnp.linalg.solve(a, jnp.broadcast_to(b, batch + b.shape[-2:]))


def solve_triangular(
    a: jax.Array, b: jax.Array, upper: bool, left: bool = True, unit: bool = False
) -> jax.Array:
    """X with a @ X = b (left) or X @ a = b for triangular a; only that triangle is read."""
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, batch + a.shape[-2:])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    return lax.linalg.triangular_solve(a, b, left_side=left, lower=not upper, unit_diagonal=unit)


def permutation(pivots: jax.Array, rows: int) -> jax.Array:
    """The permutation matrix P of A = P·L·U from LAPACK's 1-based row exchanges (…, k) → (…, n, n)."""
    order = lax.linalg.lu_pivots_to_permutation(pivots - 1, rows)
    return jax.nn.one_hot(order, rows).mT


def lu_factor(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Packed L and U, and LAPACK's 1-based pivots."""
    packed, pivots, _ = lax.linalg.lu(a)
    return packed, pivots + 1


def lu_unpack(
    packed: jax.Array, pivots: jax.Array, data: bool = True, pivot: bool = True
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """P, L and U from the packed form; what is not wanted is empty."""
    m, n = packed.shape[-2:]
    k = min(m, n)
    empty = jnp.zeros(0, packed.dtype)
    order = permutation(pivots, m).astype(packed.dtype) if pivot else empty
    if not data:
        return order, empty, empty
    lower = jnp.tril(packed[..., :, :k], -1) + jnp.eye(m, k, dtype=packed.dtype)
    return order, lower, jnp.triu(packed[..., :k, :])


def lu_solve(
    packed: jax.Array, pivots: jax.Array, b: jax.Array, left: bool = True, adjoint: bool = False
) -> jax.Array:
    """Solves with the factors of ``lu``; ``adjoint`` solves with the conjugate transpose."""
    if not left:
        return lu_solve(packed, pivots, b.mT.conj(), True, not adjoint).mT.conj()
    order, lower, upper = lu_unpack(packed, pivots)
    if adjoint:
        b = solve_triangular(upper.mT.conj(), b, False)
        return order @ solve_triangular(lower.mT.conj(), b, True, unit=True)
    b = solve_triangular(lower, order.mT @ b, False, unit=True)
    return solve_triangular(upper, b, True)


def zero_pivot(packed: jax.Array) -> jax.Array:
    """LAPACK's status of an LU factorisation: the 1-based place of the first zero on U's diagonal, or 0."""
    zero = jnp.diagonal(packed, axis1=-2, axis2=-1) == 0
    first = jnp.argmax(zero, axis=-1) + 1 if zero.shape[-1] else 0
    return jnp.where(zero.any(-1), first, 0).astype(jnp.int32)


def _small(
    values: jax.Array, size: int, atol: jax.Array | None, rtol: jax.Array | None
) -> jax.Array:
    """The bound below which a singular value counts as 0 (…): max(atol, rtol · largest)."""
    if rtol is None:
        free = size * jnp.finfo(values.dtype).eps
        rtol = free if atol is None else jnp.where(jnp.asarray(atol) > 0, 0, free)
    largest = jnp.max(jnp.abs(values), axis=-1, initial=0)
    return jnp.maximum(0 if atol is None else atol, rtol * largest)


def pinv(
    a: jax.Array,
    atol: jax.Array | None = None,
    rtol: jax.Array | None = None,
    hermitian: bool = False,
) -> jax.Array:
    """Pseudo-inverse of (…, m, n); singular values up to max(atol, rtol · largest) count as 0."""
    if a.size == 0:
        return jnp.zeros_like(a.mT)
    if hermitian:  # the lower triangle counts; the gradient is that of a general matrix
        lower = jnp.tril(a, -1)
        diagonal = jnp.real(jnp.diagonal(a, axis1=-2, axis2=-1))[..., None] * jnp.eye(a.shape[-1])
        a = a + lax.stop_gradient((lower + lower.mT.conj() + diagonal).astype(a.dtype) - a)
    values = jnp.linalg.svd(lax.stop_gradient(a), compute_uv=False)
    bound = _small(values, max(a.shape[-2:]), atol, rtol)
    return jnp.linalg.pinv(a, rtol=bound / values[..., 0])


def matrix_rank(
    a: jax.Array,
    atol: jax.Array | None = None,
    rtol: jax.Array | None = None,
    hermitian: bool = False,
) -> jax.Array:
    """Number of singular values above max(atol, rtol · largest)."""
    values = jnp.linalg.svd(a, compute_uv=False, hermitian=hermitian)
    bound = _small(values, max(a.shape[-2:]), atol, rtol)
    return jnp.sum(values > bound[..., None], axis=-1)


def full_svd(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """All singular vectors; those beyond min(m, n) are arbitrary and take no gradient (JAX has none)."""
    k = min(a.shape[-2:])
    left, values, right = jnp.linalg.svd(a, full_matrices=False)
    if a.shape[-1] == a.shape[-2]:
        return left, values, right
    more_left, _, more_right = jnp.linalg.svd(lax.stop_gradient(a))
    left = jnp.concatenate([left, more_left[..., k:]], axis=-1)
    return left, values, jnp.concatenate([right, more_right[..., k:, :]], axis=-2)


def vander(x: jax.Array, n: int | None = None) -> jax.Array:
    """Powers 0 … n − 1 of (…, k) → (…, k, n)."""
    x = jnp.atleast_1d(x)
    return x[..., None] ** jnp.arange(x.shape[-1] if n is None else n)


def reflections(a: jax.Array, tau: jax.Array) -> jax.Array:
    """First n columns of H₁H₂…H_k of (…, m, n), Hᵢ = 1 − τᵢ·vᵢ·vᵢᴴ; vᵢ is 1 at i and column i of a below."""
    m, n = a.shape[-2:]
    q = jnp.broadcast_to(jnp.eye(m, n, dtype=a.dtype), a.shape)
    vectors = jnp.tril(a, -1) + jnp.eye(m, n, dtype=a.dtype)
    for i in reversed(range(tau.shape[-1])):
        v = vectors[..., i : i + 1]
        q = q - tau[..., i, None, None] * v * (v.mT.conj() @ q)
    return q


def apply_reflections(
    a: jax.Array, tau: jax.Array, other: jax.Array, left: bool = True, adjoint: bool = False
) -> jax.Array:
    """Q @ other, or other @ Q, with Q = H₁H₂…H_k (m, m) of ``reflections``; Qᴴ where ``adjoint``."""
    if not left:
        return apply_reflections(a, tau, other.mT.conj(), True, not adjoint).mT.conj()
    vectors = jnp.tril(a, -1) + jnp.eye(*a.shape[-2:], dtype=a.dtype)
    order = range(tau.shape[-1])
    for i in order if adjoint else reversed(order):
        v, size = vectors[..., i : i + 1], tau[..., i, None, None]
        other = other - (size.conj() if adjoint else size) * v * (v.mT.conj() @ other)
    return other


def failing_minor(matrix: jax.Array) -> jax.Array:
    """LAPACK's status of a Cholesky factorisation (…, n, n) → (…): the order of the first leading minor that is
    not positive definite, or 0."""
    size = matrix.shape[-1]
    inside = jnp.arange(size) < jnp.arange(1, size + 1)[:, None]
    both = inside[:, :, None] & inside[:, None, :]
    minors = jnp.where(both, matrix[..., None, :, :], jnp.eye(size, dtype=matrix.dtype))
    factors = lower_cholesky(jax.lax.stop_gradient(minors))
    failed = jnp.isnan(factors).any((-2, -1))
    first = jnp.argmax(failed, axis=-1) + 1 if size else jnp.zeros(matrix.shape[:-2], int)
    return jnp.where(failed.any(-1), first, 0).astype(jnp.int32)


def least_squares(
    a: jax.Array, b: jax.Array, rcond: float | None = None, driver: str = "gelsy"
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """X of least norm among those that minimise ‖a @ X - b‖, the squared residuals, the rank of a, its singular
    values; what LAPACK's ``driver`` (gelsy, gels) does not compute is empty."""
    vector = _is_vector(a, b)
    b = b[..., None] if vector else b
    m, n = a.shape[-2:]
    rcond = jnp.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond
    solution = pinv(a, rtol=0.0 if driver == "gels" else rcond) @ b
    empty = jnp.zeros(0, jnp.finfo(a.dtype).dtype)
    rank, residuals = jnp.zeros(0, jnp.int32), empty
    if driver == "gelsy":
        rank = matrix_rank(a, rtol=rcond)
    elif m > n:
        residuals = jnp.sum(jnp.abs(a @ solution - b) ** 2, axis=-2)
        residuals = residuals[..., 0] if vector else residuals
    return (solution[..., 0] if vector else solution), residuals, rank, empty


def lower_cholesky(matrix: jax.Array) -> jax.Array:
    """Lower factor L of matrix (..., n, n) = L·Lᴴ, the upper triangle unread; the gradient is Hermitian as in torch."""
    mean = (matrix + matrix.mT.conj()) / 2
    read = jnp.tril(matrix) + jnp.tril(matrix, -1).mT.conj()
    return jnp.linalg.cholesky(mean + jax.lax.stop_gradient(read - mean), symmetrize_input=False)
