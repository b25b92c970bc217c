"""``torch.linalg`` beyond products and norms: solvers, factorisations, eigenvalues, and their old names.

Where torch raises (a singular matrix, one that is not positive definite) JAX gives inf or NaN. Singular and
eigenvectors are unique only up to sign or phase. ``cholesky`` reads one triangle in torch and the mean of both
in JAX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rules.compat.decompositions import (
    apply_reflections,
    failing_minor,
    full_svd,
    least_squares,
    lower_cholesky,
    lu_factor,
    lu_solve,
    lu_unpack,
    matrix_rank,
    pinv,
    reflections,
    solve,
    solve_triangular,
    vander,
    zero_pivot,
)
from rules.compat.decompositions import (
    logdet as compat_logdet,
)
from rules.registry import op, surely, unsupported


@op(
    "torch.linalg.det",
    "torch.det",
    "Tensor.det",
    example={"torch.det(x)": "jnp.linalg.det(x)"},
)
def det(A) -> Tensor:
    """Determinant."""
    if surely(A.size == 0):
        return jnp.ones(A.shape[:-2], A.dtype)
    return jnp.linalg.det(A)


@op(
    "torch.linalg.slogdet",
    "torch.slogdet",
    "Tensor.slogdet",
    fields=("sign", "logabsdet"),
    example={"torch.linalg.slogdet(x)": "jnp.linalg.slogdet(x)"},
)
def slogdet(A) -> tuple[Tensor, Tensor["float"]]:
    """Sign and logarithm of the absolute value of the determinant."""
    return jnp.linalg.slogdet(A)


@op(
    "torch.logdet",
    "Tensor.logdet",
    example={"torch.logdet(x)": "logdet(x)"},
)
def logdet(input) -> Tensor:
    """Logarithm of the determinant; NaN where it is negative."""
    if surely(input.size == 0):
        return jnp.zeros(input.shape[:-2], input.dtype)
    return compat_logdet(input)


@op(
    "torch.linalg.inv",
    "torch.inverse",
    "Tensor.inverse",
    example={"torch.linalg.inv(x)": "jnp.linalg.inv(x)"},
)
def inv(A) -> Tensor["same"]:
    """Inverse; inf or NaN where torch raises."""
    return jnp.linalg.inv(A)


@op(
    "torch.linalg.pinv",
    example={"torch.linalg.pinv(x)": "pinv(x)"},
)
def linalg_pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None) -> Tensor["same"]:
    """Pseudo-inverse, singular values below max(atol, rtol · largest) counting as zero."""
    return pinv(A, atol=atol, rtol=rcond if rtol is None else rtol, hermitian=hermitian)


@op("torch.pinverse", "Tensor.pinverse", example={"torch.pinverse(x)": "pinv(x, rtol=1e-15)"})
def pinverse(input, rcond=1e-15) -> Tensor["same"]:
    """Pseudo-inverse with a relative bound."""
    return pinv(input, rtol=rcond)


@op(
    "torch.linalg.matrix_rank",
    example={"torch.linalg.matrix_rank(x)": "matrix_rank(x)"},
)
def linalg_matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None) -> Tensor["int"]:
    """Number of singular values above max(atol, rtol · largest)."""
    return matrix_rank(A, atol=tol if atol is None else atol, rtol=rtol, hermitian=hermitian)


@op(
    "torch.linalg.cond",
    example={"torch.linalg.cond(x)": "jnp.linalg.cond(x)"},
)
def cond(A, p=None) -> Tensor["float"]:
    """Condition number."""
    return jnp.linalg.cond(A, p=p)


@op(
    "torch.linalg.solve",
    example={"torch.linalg.solve(x, y)": "solve(x, y)"},
)
def linalg_solve(A, B, *, left=True) -> Tensor:
    """X with A @ X = B, or X @ A = B; B may hold vectors, as torch decides it."""
    return solve(A, B, left=left)


@op(
    "torch.linalg.solve_ex",
    fields=("result", "info"),
    example={"torch.linalg.solve_ex(x, y)": "(solve(x, y), zero_pivot(lax.linalg.lu(x)[0]))"},
)
def linalg_solve_ex(A, B, *, left=True, check_errors=False) -> tuple[Tensor, Tensor["int"]]:
    """``solve`` and LAPACK's status."""
    return solve(A, B, left=left), zero_pivot(lax.linalg.lu(A)[0])


@op(
    "torch.linalg.inv_ex",
    fields=("inverse", "info"),
    example={"torch.linalg.inv_ex(x)": "(jnp.linalg.inv(x), zero_pivot(lax.linalg.lu(x)[0]))"},
)
def linalg_inv_ex(A, *, check_errors=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """``inv`` and LAPACK's status."""
    return jnp.linalg.inv(A), zero_pivot(lax.linalg.lu(A)[0])


@op(
    "torch.linalg.solve_triangular",
    example={
        "torch.linalg.solve_triangular(x, y, upper=True)": "solve_triangular(x, y, True)",
    },
)
def linalg_solve_triangular(A, B, *, upper, left=True, unitriangular=False) -> Tensor:
    """X with A @ X = B, or X @ A = B, reading one triangle of A."""
    return solve_triangular(A, B, upper, left=left, unit=unitriangular)


@op(
    "torch.triangular_solve",
    "Tensor.triangular_solve",
    fields=("solution", "cloned_coefficient"),
    example={"torch.triangular_solve(x, y)": "(solve_triangular(y, x, True), y)"},
)
def triangular_solve(
    input, A, upper=True, transpose=False, unitriangular=False
) -> tuple[Tensor, Tensor]:
    """The old name: solves A @ X = input, or with the transpose of A; also returns A."""
    if transpose:
        return solve_triangular(A.mT, input, not upper, unit=unitriangular), A
    return solve_triangular(A, input, upper, unit=unitriangular), A


@op(
    "torch.linalg.cholesky",
    "torch.cholesky",
    "Tensor.cholesky",
    example={
        "torch.linalg.cholesky(x)": "lower_cholesky(x)",
    },
)
def cholesky(input, upper=False) -> Tensor["same"]:
    """Triangular factor of a positive definite matrix, of which one triangle is read; NaN where torch raises."""
    if upper:
        return lower_cholesky(input.mT.conj()).mT.conj()
    return lower_cholesky(input)


@op(
    "torch.linalg.cholesky_ex",
    fields=("L", "info"),
    example={"torch.linalg.cholesky_ex(x).L": "lower_cholesky(x)"},
)
def cholesky_ex(A, *, upper=False, check_errors=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The factor, NaN where there is none, and the order of the first minor that has none."""
    if upper:
        return lower_cholesky(A.mT.conj()).mT.conj(), failing_minor(A.mT.conj())
    return lower_cholesky(A), failing_minor(A)


@op(
    "torch.cholesky_inverse",
    "Tensor.cholesky_inverse",
    example={"torch.cholesky_inverse(x)": "jnp.linalg.inv(x @ x.mT.conj())"},
)
def cholesky_inverse(input, upper=False) -> Tensor["same"]:
    """Inverse of the matrix with this Cholesky factor."""
    if upper:
        return jnp.linalg.inv(input.mT.conj() @ input)
    return jnp.linalg.inv(input @ input.mT.conj())


@op(
    "torch.cholesky_solve",
    "Tensor.cholesky_solve",
    example={"torch.cholesky_solve(x, y)": "solve(y @ y.mT.conj(), x)"},
)
def cholesky_solve(input, L, upper=False) -> Tensor["same"]:
    """Solves with the Cholesky factor of the matrix."""
    if upper:
        return solve(L.mT.conj() @ L, input)
    return solve(L @ L.mT.conj(), input)


@op(
    "torch.linalg.qr",
    fields=("Q", "R"),
    example={
        "torch.linalg.qr(x)": "jnp.linalg.qr(x)",
        'torch.linalg.qr(x, mode="complete")': 'jnp.linalg.qr(x, mode="complete")',
    },
)
def qr(A, mode="reduced") -> tuple[Tensor["same"], Tensor["same"]]:
    """Orthogonal and upper triangular factor."""
    if mode == "r":
        return jnp.zeros(0, A.dtype), jnp.linalg.qr(A, mode="r")
    return jnp.linalg.qr(A, mode=mode)


@op("torch.qr", "Tensor.qr", fields=("Q", "R"), example={"torch.qr(x)": "jnp.linalg.qr(x)"})
def old_qr(input, some=True) -> tuple[Tensor["same"], Tensor["same"]]:
    """The old name of ``linalg.qr``."""
    return jnp.linalg.qr(input, mode="reduced" if some else "complete")


@op(
    "torch.linalg.svd",
    fields=("U", "S", "Vh"),
    example={"torch.linalg.svd(x, full_matrices=False)": "jnp.linalg.svd(x, full_matrices=False)"},
)
def svd(
    A, full_matrices=True, *, driver=None
) -> tuple[Tensor["same"], Tensor["float"], Tensor["same"]]:
    """Singular vectors and values; A = U · diag(S) · Vh."""
    return full_svd(A) if full_matrices else jnp.linalg.svd(A, full_matrices=False)


@op("torch.svd", "Tensor.svd", fields=("U", "S", "V"), example={"torch.svd(x)": "old_svd(x)"})
def old_svd(
    input, some=True, compute_uv=True
) -> tuple[Tensor["same"], Tensor["float"], Tensor["same"]]:
    """The old form: A = U · diag(S) · V^H."""
    if not compute_uv:
        m, n = input.shape[-2:]
        batch = input.shape[:-2]
        values = jnp.linalg.svd(input, compute_uv=False)
        left, right = jnp.zeros((*batch, m, m)), jnp.zeros((*batch, n, n))
        return left.astype(input.dtype), values, right.astype(input.dtype)
    U, S, Vh = jnp.linalg.svd(input, full_matrices=False) if some else full_svd(input)
    return U, S, Vh.mT.conj()


@op(
    "torch.linalg.svdvals",
    example={"torch.linalg.svdvals(x)": "jnp.linalg.svd(x, compute_uv=False)"},
)
def svdvals(A, *, driver=None) -> Tensor["float"]:
    """Singular values, the largest first."""
    return jnp.linalg.svd(A, compute_uv=False)


@op(
    "torch.linalg.eigh",
    fields=("eigenvalues", "eigenvectors"),
    example={"torch.linalg.eigh(x)": 'jnp.linalg.eigh(x, UPLO="L", symmetrize_input=False)'},
)
def eigh(A, UPLO="L") -> tuple[Tensor["float"], Tensor["same"]]:
    """Eigenvalues, ascending, and eigenvectors of a Hermitian matrix."""
    return jnp.linalg.eigh(A, UPLO=UPLO, symmetrize_input=False)


@op(
    "torch.linalg.eigvalsh",
    example={"torch.linalg.eigvalsh(x)": 'jnp.linalg.eigh(x, UPLO="L", symmetrize_input=False)[0]'},
)
def eigvalsh(A, UPLO="L") -> Tensor["float"]:
    """Eigenvalues of a Hermitian matrix, ascending."""
    return jnp.linalg.eigh(A, UPLO=UPLO, symmetrize_input=False)[0]


@op("torch.linalg.eig", fields=("eigenvalues", "eigenvectors"))
def eig(A) -> tuple[Tensor["complex"], Tensor["complex"]]:
    """Refused: eigenvectors of a general matrix exist on CPU only and have no gradient in JAX."""
    unsupported("linalg.eig runs on CPU only in JAX; use eigh where the matrix is symmetric")


@op("torch.linalg.eigvals")
def eigvals(A) -> Tensor["complex"]:
    """Refused: eigenvalues of a general matrix exist on CPU only."""
    unsupported(
        "linalg.eigvals runs on CPU only in JAX; use eigvalsh where the matrix is symmetric"
    )


@op(
    "torch.linalg.lu_factor",
    fields=("LU", "pivots"),
    example={"torch.linalg.lu_factor(x)": "lu_factor(x)"},
)
def linalg_lu_factor(A, *, pivot=True) -> tuple[Tensor["same"], Tensor["int"]]:
    """Packed L and U with LAPACK's 1-based pivots."""
    if not pivot:
        unsupported("LU factorisation without pivoting")
    return lu_factor(A)


@op(
    "torch.linalg.lu_factor_ex",
    fields=("LU", "pivots", "info"),
    example={"torch.linalg.lu_factor_ex(x)": "linalg_lu_factor_ex(x)"},
)
def linalg_lu_factor_ex(
    A, *, pivot=True, check_errors=False
) -> tuple[Tensor["same"], Tensor["int"], Tensor["int"]]:
    """``lu_factor`` and LAPACK's status."""
    if not pivot:
        unsupported("LU factorisation without pivoting")
    packed, pivots = lu_factor(A)
    return packed, pivots, zero_pivot(packed)


@op("torch.lu", "Tensor.lu", example={"x.lu()": "old_lu(x)"})
def old_lu(input, pivot=True, get_infos=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The old name of ``linalg.lu_factor``."""
    if not pivot:
        unsupported("LU factorisation without pivoting")
    packed, pivots = lu_factor(input)
    if get_infos:
        return packed, pivots, zero_pivot(packed)
    return packed, pivots


@op(
    "torch.linalg.lu",
    fields=("P", "L", "U"),
    example={"torch.linalg.lu(x)": "lu_unpack(*lu_factor(x))"},
)
def linalg_lu(A, *, pivot=True) -> tuple[Tensor["same"], Tensor["same"], Tensor["same"]]:
    """A = P · L · U."""
    if not pivot:
        unsupported("LU factorisation without pivoting")
    return lu_unpack(*lu_factor(A))


@op("torch.lu_unpack", fields=("P", "L", "U"), example={"torch.lu_unpack(x, i)": "lu_unpack(x, i)"})
def unpack_lu(
    LU_data, LU_pivots, unpack_data=True, unpack_pivots=True
) -> tuple[Tensor["same"], Tensor["same"], Tensor["same"]]:
    """P, L and U of the packed form."""
    return lu_unpack(LU_data, LU_pivots, data=unpack_data, pivot=unpack_pivots)


@op("torch.linalg.lu_solve", example={"torch.linalg.lu_solve(x, i, y)": "lu_solve(x, i, y)"})
def linalg_lu_solve(LU, pivots, B, *, left=True, adjoint=False) -> Tensor["same"]:
    """Solves with an LU factorisation."""
    return lu_solve(LU, pivots, B, left=left, adjoint=adjoint)


@op("torch.lu_solve", "Tensor.lu_solve", example={"torch.lu_solve(x, y, i)": "lu_solve(y, i, x)"})
def old_lu_solve(b, LU_data, LU_pivots) -> Tensor["same"]:
    """The old argument order of ``linalg.lu_solve``."""
    return lu_solve(LU_data, LU_pivots, b)


@op(
    "torch.linalg.matrix_power",
    "torch.matrix_power",
    "Tensor.matrix_power",
    example={"torch.matrix_power(x, 3)": "jnp.linalg.matrix_power(x, 3)"},
)
def matrix_power(input, n) -> Tensor["same"]:
    """The matrix multiplied n times with itself; its inverse for a negative n."""
    return jnp.linalg.matrix_power(input, n)


@op(
    "torch.linalg.matrix_exp",
    "torch.matrix_exp",
    "Tensor.matrix_exp",
    example={"torch.matrix_exp(x)": "jax.scipy.linalg.expm(x)"},
)
def matrix_exp(A) -> Tensor["same"]:
    """Matrix exponential."""
    if surely(A.dtype == jnp.bfloat16):
        unsupported("matrix_exp of bfloat16: compute it in float32")
    return jax.scipy.linalg.expm(A)


@op(
    "torch.linalg.lstsq",
    fields=("solution", "residuals", "rank", "singular_values"),
    example={"torch.linalg.lstsq(x, y).solution": "least_squares(x, y)[0]"},
)
def lstsq(A, B, rcond=None, *, driver=None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Least squares; by gelss and gelsd whether there are residuals depends on the rank."""
    if driver is None:
        return least_squares(A, B, rcond=rcond)
    if driver in ("gelss", "gelsd"):
        unsupported("lstsq by gelss or gelsd has residuals only where the rank is full; use gelsy")
    return least_squares(A, B, rcond=rcond, driver=driver)


@op(
    "torch.linalg.tensorinv",
    example={"torch.linalg.tensorinv(x)": "jnp.linalg.tensorinv(x)"},
)
def tensorinv(A, ind=2) -> Tensor["same"]:
    """Inverse of a tensor as a map between its axes."""
    return jnp.linalg.tensorinv(A, ind=ind)


@op(
    "torch.linalg.tensorsolve",
    example={"torch.linalg.tensorsolve(x, y)": "jnp.linalg.tensorsolve(x, y)"},
)
def tensorsolve(A, B, dims=None) -> Tensor["same"]:
    """X with tensordot(A, X) = B."""
    if dims is not None:
        A = jnp.moveaxis(A, dims, tuple(range(-len(dims), 0)))
        B = B.reshape(A.shape[: B.ndim])
    return jnp.linalg.tensorsolve(A, B)


@op("torch.linalg.vander", example={"torch.linalg.vander(x)": "vander(x)"})
def linalg_vander(x, N=None) -> Tensor["same"]:
    """Powers 0 … N − 1 of the elements, a row for each."""
    if surely(x.ndim == 0):
        x = x[None]
    return vander(x, n=N)


@op("torch.vander", example={"torch.vander(x)": "jnp.vander(x)"})
def flat_vander(x, N=None, increasing=False) -> Tensor["same"]:
    """Powers of a vector, a row for each element."""
    return jnp.vander(x, N=N, increasing=increasing)


@op(
    "torch.linalg.householder_product",
    "torch.orgqr",
    "Tensor.orgqr",
    example={"torch.linalg.householder_product(x, y)": "reflections(x, y)"},
)
def householder_product(A, tau) -> Tensor["same"]:
    """First columns of the product of Householder reflections."""
    return reflections(A, tau)


@op(
    "torch.linalg.diagonal",
    example={"torch.linalg.diagonal(x)": "jnp.diagonal(x, axis1=-2, axis2=-1)"},
)
def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1) -> Tensor["same"]:
    """Diagonals of the matrices on two axes."""
    return jnp.diagonal(A, offset=offset, axis1=dim1, axis2=dim2)


@op(
    "torch.ormqr",
    "Tensor.ormqr",
    example={"torch.ormqr(x, y, z, transpose=True)": "apply_reflections(x, y, z, adjoint=True)"},
)
def ormqr(input, tau, other, left=True, transpose=False) -> Tensor["same"]:
    """Product of a matrix with the Q of Householder reflections, all columns of it."""
    return apply_reflections(input, tau, other, left=left, adjoint=transpose)


@op(
    "torch.geqrf",
    "Tensor.geqrf",
    fields=("a", "tau"),
)
def geqrf(input) -> tuple[Tensor["same"], Tensor["same"]]:
    """R and the Householder reflections of a QR factorisation, packed as in LAPACK."""
    packed, tau = jnp.linalg.qr(input, mode="raw")
    return packed.mT, tau


@op("torch.linalg.ldl_factor", "torch.linalg.ldl_factor_ex", "torch.linalg.ldl_solve")
def ldl(*args, **kwargs) -> Tensor:
    """Refused: JAX has no factorisation of symmetric matrices that are not positive definite."""
    return unsupported(
        "ldl factors: JAX has none; use jnp.linalg.solve, or cholesky where it exists"
    )
