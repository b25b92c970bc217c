"""Roots, exponentials, logarithms and trigonometry, one element at a time."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.compat.pointwise import atan2 as compat_atan2
from rules.registry import is_bool, is_complex, is_integer, op, surely, unsupported


@op("torch.sqrt", "Tensor.sqrt", example={"x.sqrt()": "jnp.sqrt(x)"})
def sqrt(input) -> Tensor:
    """Square root."""
    return jnp.sqrt(input)


@op("torch.rsqrt", "Tensor.rsqrt", example={"x.rsqrt()": "lax.rsqrt(x)"})
def rsqrt(input) -> Tensor:
    """1 / √input."""
    if surely(is_integer(input) or is_bool(input)):
        return 1 / jnp.sqrt(input)
    return lax.rsqrt(input)


@op("torch.exp", "Tensor.exp", example={"x.exp()": "jnp.exp(x)"})
def exp(input) -> Tensor:
    """Exponential."""
    return jnp.exp(input)


@op("torch.exp2", "torch.special.exp2", "Tensor.exp2", example={"x.exp2()": "jnp.exp2(x)"})
def exp2(input) -> Tensor:
    """2 to the power input."""
    return jnp.exp2(input)


@op("torch.expm1", "torch.special.expm1", "Tensor.expm1", example={"x.expm1()": "jnp.expm1(x)"})
def expm1(input) -> Tensor:
    """exp(input) - 1."""
    return jnp.expm1(input)


@op("torch.log", "Tensor.log", example={"x.log()": "jnp.log(x)"})
def log(input) -> Tensor:
    """Natural logarithm."""
    return jnp.log(input)


@op("torch.log2", "Tensor.log2", example={"x.log2()": "jnp.log2(x)"})
def log2(input) -> Tensor:
    """Logarithm to base 2."""
    return jnp.log2(input)


@op("torch.log10", "Tensor.log10", example={"x.log10()": "jnp.log10(x)"})
def log10(input) -> Tensor:
    """Logarithm to base 10."""
    return jnp.log10(input)


@op("torch.log1p", "torch.special.log1p", "Tensor.log1p", example={"x.log1p()": "jnp.log1p(x)"})
def log1p(input) -> Tensor:
    """log(1 + input)."""
    return jnp.log1p(input)


@op("torch.logaddexp", "Tensor.logaddexp", example={"torch.logaddexp(x, y)": "jnp.logaddexp(x, y)"})
def logaddexp(input, other) -> Tensor:
    """log(exp(input) + exp(other))."""
    if surely(is_complex(input)):
        unsupported("logaddexp of complex numbers, whose imaginary part differs by multiples of 2π")
    return jnp.logaddexp(input, other)


@op(
    "torch.logaddexp2",
    "Tensor.logaddexp2",
    example={"torch.logaddexp2(x, y)": "jnp.logaddexp2(x, y)"},
)
def logaddexp2(input, other) -> Tensor:
    """log2(2^input + 2^other)."""
    return jnp.logaddexp2(input, other)


@op("torch.sin", "Tensor.sin", example={"x.sin()": "jnp.sin(x)"})
def sin(input) -> Tensor:
    """Sine."""
    return jnp.sin(input)


@op("torch.cos", "Tensor.cos", example={"x.cos()": "jnp.cos(x)"})
def cos(input) -> Tensor:
    """Cosine."""
    return jnp.cos(input)


@op("torch.tan", "Tensor.tan", example={"x.tan()": "jnp.tan(x)"})
def tan(input) -> Tensor:
    """Tangent."""
    return jnp.tan(input)


@op("torch.sinh", "Tensor.sinh", example={"x.sinh()": "jnp.sinh(x)"})
def sinh(input) -> Tensor:
    """Hyperbolic sine."""
    return jnp.sinh(input)


@op("torch.cosh", "Tensor.cosh", example={"x.cosh()": "jnp.cosh(x)"})
def cosh(input) -> Tensor:
    """Hyperbolic cosine."""
    return jnp.cosh(input)


@op(
    "torch.asin",
    "torch.arcsin",
    "Tensor.asin",
    "Tensor.arcsin",
    example={"x.asin()": "jnp.arcsin(x)"},
)
def asin(input) -> Tensor:
    """Arc sine."""
    return jnp.arcsin(input)


@op(
    "torch.acos",
    "torch.arccos",
    "Tensor.acos",
    "Tensor.arccos",
    example={"x.acos()": "jnp.arccos(x)"},
)
def acos(input) -> Tensor:
    """Arc cosine."""
    return jnp.arccos(input)


@op(
    "torch.atan",
    "torch.arctan",
    "Tensor.atan",
    "Tensor.arctan",
    example={"x.atan()": "jnp.arctan(x)"},
)
def atan(input) -> Tensor:
    """Arc tangent."""
    return jnp.arctan(input)


@op(
    "torch.atan2",
    "torch.arctan2",
    "Tensor.atan2",
    "Tensor.arctan2",
    example={"torch.atan2(x, y)": "atan2(x, y)"},
)
def atan2(input, other) -> Tensor:
    """Angle of the point (other, input)."""
    return compat_atan2(input, other)


@op(
    "torch.asinh",
    "torch.arcsinh",
    "Tensor.asinh",
    "Tensor.arcsinh",
    example={"x.asinh()": "jnp.arcsinh(x)"},
)
def asinh(input) -> Tensor:
    """Inverse hyperbolic sine."""
    return jnp.arcsinh(input)


@op(
    "torch.acosh",
    "torch.arccosh",
    "Tensor.acosh",
    "Tensor.arccosh",
    example={"x.acosh()": "jnp.arccosh(x)"},
)
def acosh(input) -> Tensor:
    """Inverse hyperbolic cosine."""
    return jnp.arccosh(input)


@op(
    "torch.atanh",
    "torch.arctanh",
    "Tensor.atanh",
    "Tensor.arctanh",
    example={"x.atanh()": "jnp.arctanh(x)"},
)
def atanh(input) -> Tensor:
    """Inverse hyperbolic tangent."""
    return jnp.arctanh(input)


@op("torch.hypot", "Tensor.hypot", example={"torch.hypot(x, y)": "jnp.hypot(x, y)"})
def hypot(input, other) -> Tensor:
    """√(input² + other²)."""
    return jnp.hypot(input, other)


@op("torch.deg2rad", "Tensor.deg2rad", example={"x.deg2rad()": "jnp.deg2rad(x)"})
def deg2rad(input) -> Tensor:
    """Degrees to radians."""
    return jnp.deg2rad(input)


@op("torch.rad2deg", "Tensor.rad2deg", example={"x.rad2deg()": "jnp.rad2deg(x)"})
def rad2deg(input) -> Tensor:
    """Radians to degrees."""
    return jnp.rad2deg(input)


@op("torch.sinc", "torch.special.sinc", "Tensor.sinc", example={"x.sinc()": "jnp.sinc(x)"})
def sinc(input) -> Tensor:
    """sin(πx) / (πx)."""
    return jnp.sinc(input)


@op("torch.ldexp", "Tensor.ldexp", example={"torch.ldexp(x, i)": "x * 2.0**i"})
def ldexp(input, other) -> Tensor:
    """input · 2^other, computed so in torch too."""
    return input * 2.0**other


@op(
    "torch.frexp",
    "Tensor.frexp",
    fields=("mantissa", "exponent"),
    example={"torch.frexp(x)": "jnp.frexp(x)"},
)
def frexp(input) -> tuple[Tensor, Tensor["int"]]:
    """Mantissa and exponent."""
    return jnp.frexp(input)
