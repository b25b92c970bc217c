"""Special functions of the torch namespace, one element at a time: sigmoid, the error and gamma functions."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.special import bounded_logit
from rules.compat.special import i0 as compat_i0
from rules.compat.special import polygamma as polygamma_
from rules.registry import is_bool, is_integer, op, surely


@op(
    "torch.sigmoid",
    "torch.special.expit",
    "Tensor.sigmoid",
    example={"x.sigmoid()": "jax.nn.sigmoid(x)"},
)
def sigmoid(input) -> Tensor["float"]:
    """1 / (1 + exp(-input))."""
    if surely(is_integer(input) or is_bool(input)):
        return jax.nn.sigmoid(input.astype(jnp.float32))
    return jax.nn.sigmoid(input)


@op("torch.tanh", "Tensor.tanh", example={"x.tanh()": "jnp.tanh(x)"})
def tanh(input) -> Tensor:
    """Hyperbolic tangent."""
    return jnp.tanh(input)


@op(
    "torch.logit",
    "torch.special.logit",
    "Tensor.logit",
    example={
        "torch.logit(x)": "jax.scipy.special.logit(x)",
        "torch.logit(x, eps=1e-6)": "jax.scipy.special.logit(jnp.clip(x, 1e-6, 0.999999))",
        "torch.logit(x, eps=1e-12)": "bounded_logit(x, 1e-12)",
    },
)
def logit(input, eps=None) -> Tensor["float"]:
    """log(x / (1 - x)), of x bounded to [eps, 1 - eps]; a bound that is 0 or 1 in its dtype has no gradient."""
    if eps is None:
        return jax.scipy.special.logit(input)
    if surely(eps >= 1e-6):
        return jax.scipy.special.logit(jnp.clip(input, eps, 1 - eps))
    return bounded_logit(input, eps)


@op("torch.erf", "torch.special.erf", "Tensor.erf", example={"x.erf()": "jax.scipy.special.erf(x)"})
def erf(input) -> Tensor["float"]:
    """Error function."""
    return jax.scipy.special.erf(input)


@op(
    "torch.erfc",
    "torch.special.erfc",
    "Tensor.erfc",
    example={"x.erfc()": "jax.scipy.special.erfc(x)"},
)
def erfc(input) -> Tensor["float"]:
    """1 - erf."""
    return jax.scipy.special.erfc(input)


@op(
    "torch.erfinv",
    "torch.special.erfinv",
    "Tensor.erfinv",
    example={"x.erfinv()": "jax.scipy.special.erfinv(x)"},
)
def erfinv(input) -> Tensor["float"]:
    """Inverse error function."""
    return jax.scipy.special.erfinv(input)


@op(
    "torch.lgamma",
    "torch.special.gammaln",
    "Tensor.lgamma",
    example={"x.lgamma()": "jax.scipy.special.gammaln(x)"},
)
def lgamma(input) -> Tensor["float"]:
    """Logarithm of |Γ|."""
    return jax.scipy.special.gammaln(input)


@op(
    "torch.digamma",
    "torch.special.digamma",
    "torch.special.psi",
    "Tensor.digamma",
    example={"x.digamma()": "polygamma(0, x)"},
)
def digamma(input) -> Tensor["float"]:
    """Derivative of lgamma."""
    return polygamma_(0, input)


@op(
    "torch.polygamma",
    "torch.special.polygamma",
    example={"torch.polygamma(1, x)": "polygamma(1, x)"},
)
def polygamma(n, input) -> Tensor["float"]:
    """n-th derivative of digamma."""
    return polygamma_(n, input)


@op("Tensor.polygamma", example={"x.polygamma(1)": "polygamma(1, x)"})
def polygamma_method(input, n) -> Tensor["float"]:
    """n-th derivative of digamma."""
    return polygamma_(n, input)


@op(
    "torch.mvlgamma",
    "torch.special.multigammaln",
    "Tensor.mvlgamma",
    example={"x.mvlgamma(2)": "jax.scipy.special.multigammaln(x, 2)"},
)
def mvlgamma(input, p) -> Tensor["float"]:
    """Logarithm of the multivariate gamma function."""
    return jax.scipy.special.multigammaln(input, p)


@op(
    "torch.igamma",
    "torch.special.gammainc",
    "Tensor.igamma",
    example={"torch.igamma(x, y)": "jax.scipy.special.gammainc(x, y)"},
)
def igamma(input, other) -> Tensor["float"]:
    """Regularised lower incomplete gamma function."""
    return jax.scipy.special.gammainc(input, other)


@op(
    "torch.igammac",
    "torch.special.gammaincc",
    "Tensor.igammac",
    example={"torch.igammac(x, y)": "jax.scipy.special.gammaincc(x, y)"},
)
def igammac(input, other) -> Tensor["float"]:
    """Regularised upper incomplete gamma function."""
    return jax.scipy.special.gammaincc(input, other)


@op("torch.i0", "torch.special.i0", "Tensor.i0", example={"x.i0()": "i0(x)"})
def i0(input) -> Tensor["float"]:
    """Modified Bessel function of order 0."""
    return compat_i0(input)


@op(
    "torch.xlogy",
    "torch.special.xlogy",
    "Tensor.xlogy",
    example={"torch.xlogy(x, y)": "jax.scipy.special.xlogy(x, y)"},
)
def xlogy(input, other) -> Tensor["float"]:
    """input · log(other), 0 where input is 0."""
    return jax.scipy.special.xlogy(input, other)
