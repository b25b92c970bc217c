"""``torch.special``: what has no name in ``torch`` itself (see pointwise.py for erf, gamma functions, logit …)."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.special import erfcx as compat_erfcx
from rules.compat.special import polynomial
from rules.compat.special import zeta as compat_zeta
from rules.registry import is_bool, is_integer, op, surely


@op("torch.special.entr", example={"torch.special.entr(x)": "jax.scipy.special.entr(x)"})
def entr(input) -> Tensor["float"]:
    """-x log x."""
    return jax.scipy.special.entr(input)


@op("torch.special.i0e", example={"torch.special.i0e(x)": "jax.scipy.special.i0e(x)"})
def i0e(input) -> Tensor["float"]:
    """Modified Bessel function of order 0, scaled by exp(-|x|)."""
    return jax.scipy.special.i0e(input)


@op(
    "torch.special.i1",
    "torch.special.modified_bessel_i1",
    example={"torch.special.i1(x)": "jax.scipy.special.i1(x)"},
)
def i1(input) -> Tensor["float"]:
    """Modified Bessel function of order 1."""
    return jax.scipy.special.i1(input)


@op("torch.special.i1e", example={"torch.special.i1e(x)": "jax.scipy.special.i1e(x)"})
def i1e(input) -> Tensor["float"]:
    """Modified Bessel function of order 1, scaled by exp(-|x|)."""
    return jax.scipy.special.i1e(input)


@op(
    "torch.special.modified_bessel_i0",
    example={"torch.special.modified_bessel_i0(x)": "jax.scipy.special.i0(x)"},
)
def modified_bessel_i0(input) -> Tensor["float"]:
    """Modified Bessel function of order 0."""
    return jax.scipy.special.i0(input)


@op(
    "torch.special.log_ndtr", example={"torch.special.log_ndtr(x)": "jax.scipy.special.log_ndtr(x)"}
)
def log_ndtr(input) -> Tensor["float"]:
    """Logarithm of the normal distribution function."""
    if surely(is_integer(input) or is_bool(input)):
        return jax.scipy.special.log_ndtr(input.astype(jnp.float32))
    return jax.scipy.special.log_ndtr(input)


@op("torch.special.ndtr", example={"torch.special.ndtr(x)": "jax.scipy.special.ndtr(x)"})
def ndtr(input) -> Tensor["float"]:
    """The normal distribution function."""
    if surely(is_integer(input) or is_bool(input)):
        return jax.scipy.special.ndtr(input.astype(jnp.float32))
    return jax.scipy.special.ndtr(input)


@op("torch.special.ndtri", example={"torch.special.ndtri(x)": "jax.scipy.special.ndtri(x)"})
def ndtri(input) -> Tensor["float"]:
    """Its inverse."""
    if surely(is_integer(input) or is_bool(input)):
        return jax.scipy.special.ndtri(input.astype(jnp.float32))
    return jax.scipy.special.ndtri(input)


@op(
    "torch.special.xlog1py",
    example={"torch.special.xlog1py(x, y)": "jax.scipy.special.xlog1py(x, y)"},
)
def xlog1py(input, other) -> Tensor["float"]:
    """input · log(1 + other), 0 where input is 0."""
    return jax.scipy.special.xlog1py(input, other)


@op("torch.special.zeta", example={"torch.special.zeta(x, y)": "zeta(x, y)"})
def zeta(input, other) -> Tensor["float"]:
    """Hurwitz zeta function."""
    return compat_zeta(input, other)


@op(
    "torch.special.spherical_bessel_j0",
    example={"torch.special.spherical_bessel_j0(x)": "jnp.sinc(x / jnp.pi)"},
)
def spherical_bessel_j0(x) -> Tensor["float"]:
    """sin(x) / x."""
    return jnp.sinc(x / jnp.pi)


@op("torch.special.erfcx", example={"torch.special.erfcx(x)": "erfcx(x)"})
def erfcx(input) -> Tensor["float"]:
    """exp(x²) erfc(x)."""
    return compat_erfcx(input)


@op(
    "torch.special.chebyshev_polynomial_t",
    example={"torch.special.chebyshev_polynomial_t(x, y)": 'polynomial(x, y, "t")'},
)
def chebyshev_polynomial_t(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the first kind of degree n."""
    return polynomial(input, n, "t")


@op(
    "torch.special.chebyshev_polynomial_u",
    example={"torch.special.chebyshev_polynomial_u(x, y)": 'polynomial(x, y, "u")'},
)
def chebyshev_polynomial_u(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the second kind of degree n."""
    return polynomial(input, n, "u")


@op(
    "torch.special.chebyshev_polynomial_v",
    example={"torch.special.chebyshev_polynomial_v(x, y)": 'polynomial(x, y, "v")'},
)
def chebyshev_polynomial_v(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the third kind of degree n."""
    return polynomial(input, n, "v")


@op(
    "torch.special.chebyshev_polynomial_w",
    example={"torch.special.chebyshev_polynomial_w(x, y)": 'polynomial(x, y, "w")'},
)
def chebyshev_polynomial_w(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the fourth kind of degree n."""
    return polynomial(input, n, "w")


@op(
    "torch.special.shifted_chebyshev_polynomial_t",
    example={"torch.special.shifted_chebyshev_polynomial_t(x, y)": 'polynomial(2 * x - 1, y, "t")'},
)
def shifted_chebyshev_polynomial_t(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the first kind on [0, 1] of degree n."""
    return polynomial(2 * input - 1, n, "t")


@op(
    "torch.special.shifted_chebyshev_polynomial_u",
    example={"torch.special.shifted_chebyshev_polynomial_u(x, y)": 'polynomial(2 * x - 1, y, "u")'},
)
def shifted_chebyshev_polynomial_u(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the second kind on [0, 1] of degree n."""
    return polynomial(2 * input - 1, n, "u")


@op(
    "torch.special.shifted_chebyshev_polynomial_v",
    example={"torch.special.shifted_chebyshev_polynomial_v(x, y)": 'polynomial(2 * x - 1, y, "v")'},
)
def shifted_chebyshev_polynomial_v(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the third kind on [0, 1] of degree n."""
    return polynomial(2 * input - 1, n, "v")


@op(
    "torch.special.shifted_chebyshev_polynomial_w",
    example={"torch.special.shifted_chebyshev_polynomial_w(x, y)": 'polynomial(2 * x - 1, y, "w")'},
)
def shifted_chebyshev_polynomial_w(input, n) -> Tensor["float"]:
    """Chebyshev polynomial of the fourth kind on [0, 1] of degree n."""
    return polynomial(2 * input - 1, n, "w")


@op(
    "torch.special.hermite_polynomial_h",
    example={"torch.special.hermite_polynomial_h(x, y)": 'polynomial(x, y, "h")'},
)
def hermite_polynomial_h(input, n) -> Tensor["float"]:
    """Physicists' Hermite polynomial of degree n."""
    return polynomial(input, n, "h")


@op(
    "torch.special.hermite_polynomial_he",
    example={"torch.special.hermite_polynomial_he(x, y)": 'polynomial(x, y, "he")'},
)
def hermite_polynomial_he(input, n) -> Tensor["float"]:
    """Probabilists' Hermite polynomial of degree n."""
    return polynomial(input, n, "he")


@op(
    "torch.special.laguerre_polynomial_l",
    example={"torch.special.laguerre_polynomial_l(x, y)": 'polynomial(x, y, "l")'},
)
def laguerre_polynomial_l(input, n) -> Tensor["float"]:
    """Laguerre polynomial of degree n."""
    return polynomial(input, n, "l")


@op(
    "torch.special.legendre_polynomial_p",
    example={"torch.special.legendre_polynomial_p(x, y)": 'polynomial(x, y, "p")'},
)
def legendre_polynomial_p(input, n) -> Tensor["float"]:
    """Legendre polynomial of degree n."""
    return polynomial(input, n, "p")
