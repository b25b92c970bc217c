"""Arithmetic, one element at a time: functions, methods and operators of torch that take and give tensors.

Integers divide to floats and half-way cases round to even in both libraries; ``//`` floors and ``%`` takes the sign
of the divisor in both. What differs: ``alpha``, rounding modes, bounds of ``clamp``, weights of ``lerp``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rules.compat.pointwise import absolute, truncated_division
from rules.compat.pointwise import atan2 as compat_atan2
from rules.compat.pointwise import clamp as compat_clamp
from rules.compat.special import polygamma as polygamma_
from rules.registry import is_bool, is_complex, is_integer, is_tensor, op, surely, unsupported

# --- arithmetic -------------------------------------------------------------------------------------------------


@op(
    "torch.add",
    "Tensor.add",
    "Tensor.__add__",
    example={"torch.add(x, y)": "x + y", "x.add(y, alpha=2)": "x + 2 * y", "x + 1": "x + 1"},
)
def add(input, other, *, alpha=1) -> Tensor:
    """input + alpha · other."""
    if alpha == 1:
        return input + other
    return input + alpha * other


@op("Tensor.__radd__", example={"1 + x": "1 + x"})
def radd(input, other) -> Tensor:
    """other + input."""
    return other + input


@op(
    "torch.sub",
    "torch.subtract",
    "Tensor.sub",
    "Tensor.subtract",
    "Tensor.__sub__",
    example={"torch.sub(x, y)": "x - y", "x.sub(y, alpha=2)": "x - 2 * y"},
)
def sub(input, other, *, alpha=1) -> Tensor:
    """input - alpha · other."""
    if alpha == 1:
        return input - other
    return input - alpha * other


@op("torch.rsub", "Tensor.__rsub__", example={"1 - x": "1 - x"})
def rsub(input, other, *, alpha=1) -> Tensor:
    """other - alpha · input."""
    if alpha == 1:
        return other - input
    return other - alpha * input


@op(
    "torch.mul",
    "torch.multiply",
    "Tensor.mul",
    "Tensor.multiply",
    "Tensor.__mul__",
    example={"torch.mul(x, y)": "x * y", "x.mul(2)": "x * 2"},
)
def mul(input, other) -> Tensor:
    """input · other."""
    return input * other


@op("Tensor.__rmul__", example={"2 * x": "2 * x"})
def rmul(input, other) -> Tensor:
    """other · input."""
    return other * input


@op(
    "torch.div",
    "torch.divide",
    "Tensor.div",
    "Tensor.divide",
    example={
        "torch.div(x, y)": "x / y",
        'torch.div(i, 2, rounding_mode="floor")': "i // 2",
        'x.div(y, rounding_mode="trunc")': "truncated_division(x, y)",
    },
)
def div(input, other, *, rounding_mode=None) -> Tensor:
    """True division, or rounded down or towards zero."""
    if rounding_mode is None:
        return input / other
    if rounding_mode == "floor":
        return input // other
    return truncated_division(input, other)


@op(
    "torch.true_divide",
    "Tensor.true_divide",
    "Tensor.__truediv__",
    "Tensor.__div__",
    example={"x / y": "x / y"},
)
def true_divide(input, other) -> Tensor:
    """input / other, a float also for integers."""
    return input / other


@op("Tensor.__rtruediv__", "Tensor.__rdiv__", example={"1 / x": "1 / x"})
def rtruediv(input, other) -> Tensor:
    """other / input."""
    return other / input


@op(
    "torch.floor_divide", "Tensor.floor_divide", "Tensor.__floordiv__", example={"i // 2": "i // 2"}
)
def floor_divide(input, other) -> Tensor:
    """Division rounded down."""
    return input // other


@op("Tensor.__rfloordiv__", example={"2 // i": "2 // i"})
def rfloordiv(input, other) -> Tensor:
    """other // input."""
    return other // input


@op("torch.remainder", "Tensor.remainder", "Tensor.__mod__", example={"i % 2": "i % 2"})
def remainder(input, other) -> Tensor:
    """Remainder with the sign of the divisor."""
    return input % other


@op("Tensor.__rmod__", example={"2 % i": "2 % i"})
def rmod(input, other) -> Tensor:
    """other % input."""
    return other % input


@op("torch.fmod", "Tensor.fmod", example={"torch.fmod(x, 2)": "jnp.fmod(x, 2)"})
def fmod(input, other) -> Tensor:
    """Remainder with the sign of the dividend."""
    return jnp.fmod(input, other)


@op("torch.pow", "Tensor.pow", "Tensor.__pow__", example={"x.pow(2)": "x**2", "x**y": "x**y"})
def pow(input, exponent) -> Tensor:
    """Power."""
    return input**exponent


@op("Tensor.__rpow__", example={"2**x": "2**x"})
def rpow(input, other) -> Tensor:
    """other to the power input."""
    if surely(is_integer(input) and is_integer(other) and bool((input < 0).any())):
        unsupported("negative powers of integers")
    return other**input


@op(
    "torch.float_power",
    "Tensor.float_power",
    example={"torch.float_power(i, 2)": "jnp.float_power(i, 2)"},
)
def float_power(input, exponent) -> Tensor["float"]:
    """Power in double precision."""
    if surely(is_tensor(input) and input.dtype in (jnp.bfloat16, jnp.float16)):
        unsupported("float_power of half precision, which is float64 in torch")
    return jnp.float_power(input, exponent)


@op(
    "torch.neg",
    "torch.negative",
    "Tensor.neg",
    "Tensor.negative",
    "Tensor.__neg__",
    example={"-x": "-x"},
)
def neg(input) -> Tensor["same"]:
    """Negation."""
    return -input


@op("torch.positive", "Tensor.positive", "Tensor.__pos__", example={"+x": "+x"})
def positive(input) -> Tensor["same"]:
    """The tensor itself."""
    return +input


@op(
    "torch.abs",
    "torch.absolute",
    "Tensor.abs",
    "Tensor.absolute",
    "Tensor.__abs__",
    example={"x.abs()": "absolute(x)", "abs(x)": "absolute(x)"},
)
def abs(input) -> Tensor:
    """Absolute value."""
    return absolute(input)


@op("torch.reciprocal", "Tensor.reciprocal", example={"x.reciprocal()": "1 / x"})
def reciprocal(input) -> Tensor:
    """1 / input."""
    return 1 / input


@op("torch.square", "Tensor.square", example={"x.square()": "jnp.square(x)"})
def square(input) -> Tensor["same"]:
    """input²."""
    return jnp.square(input)


@op("torch.addcmul", "Tensor.addcmul", example={"torch.addcmul(x, y, z)": "x + y * z"})
def addcmul(input, tensor1, tensor2, *, value=1) -> Tensor:
    """input + value · tensor1 · tensor2."""
    if value == 1:
        return input + tensor1 * tensor2
    return input + value * tensor1 * tensor2


@op(
    "torch.addcdiv",
    "Tensor.addcdiv",
    example={"torch.addcdiv(x, y, z, value=0.5)": "x + 0.5 * y / z"},
)
def addcdiv(input, tensor1, tensor2, *, value=1) -> Tensor:
    """input + value · tensor1 / tensor2."""
    if value == 1:
        return input + tensor1 / tensor2
    return input + value * tensor1 / tensor2


@op("torch.lerp", "Tensor.lerp", example={"torch.lerp(x, y, 0.5)": "x + 0.5 * (y - x)"})
def lerp(input, end, weight) -> Tensor:
    """Linear interpolation from input to end."""
    return input + weight * (end - input)


# --- rounding, sign, bounds -------------------------------------------------------------------------------------


@op("torch.ceil", "Tensor.ceil", example={"x.ceil()": "jnp.ceil(x)"})
def ceil(input) -> Tensor["same"]:
    """Rounded up."""
    return jnp.ceil(input)


@op("torch.floor", "Tensor.floor", example={"x.floor()": "jnp.floor(x)"})
def floor(input) -> Tensor["same"]:
    """Rounded down."""
    return jnp.floor(input)


@op("torch.trunc", "torch.fix", "Tensor.trunc", "Tensor.fix", example={"x.trunc()": "jnp.trunc(x)"})
def trunc(input) -> Tensor["same"]:
    """Rounded towards zero."""
    return jnp.trunc(input)


@op(
    "torch.round",
    "torch.special.round",
    "Tensor.round",
    example={"x.round()": "jnp.round(x)", "x.round(decimals=2)": "jnp.round(x, decimals=2)"},
)
def round(input, *, decimals=0) -> Tensor["same"]:
    """Rounded half to even."""
    return jnp.round(input, decimals=decimals)


@op("torch.frac", "Tensor.frac", example={"x.frac()": "x - jnp.trunc(x)"})
def frac(input) -> Tensor["same"]:
    """The fractional part, with the sign of the input."""
    return input - jnp.trunc(input)


@op("torch.sign", "Tensor.sign", example={"x.sign()": "jnp.sign(x)"})
def sign(input) -> Tensor["same"]:
    """-1, 0 or 1."""
    if surely(is_bool(input)):
        return input
    return jnp.sign(input)


@op("torch.sgn", "Tensor.sgn", example={"x.sgn()": "jnp.sign(x)"})
def sgn(input) -> Tensor["same"]:
    """Sign; of a complex number, its direction."""
    if surely(is_complex(input)):
        return jnp.where(input == 0, 0, input / jnp.abs(jnp.where(input == 0, 1, input)))
    if surely(is_bool(input)):
        return input
    return jnp.sign(input)


@op("torch.signbit", "Tensor.signbit", example={"x.signbit()": "jnp.signbit(x)"})
def signbit(input) -> Tensor["bool"]:
    """Whether the sign bit is set."""
    return jnp.signbit(input)


@op("torch.copysign", "Tensor.copysign", example={"torch.copysign(x, y)": "jnp.copysign(x, y)"})
def copysign(input, other) -> Tensor:
    """Magnitude of input, sign of other."""
    return jnp.copysign(input, other)


@op(
    "torch.heaviside",
    "Tensor.heaviside",
    example={"torch.heaviside(x, y)": "jnp.heaviside(x, y).astype(x.dtype)"},
)
def heaviside(input, values) -> Tensor:
    """0 below zero, 1 above, ``values`` at zero."""
    return jnp.heaviside(input, values).astype(input.dtype)


@op("torch.nextafter", "Tensor.nextafter")
def nextafter(input, other) -> Tensor:
    """The next float towards other; its gradient is that of ``input``."""
    step = jnp.nextafter(lax.stop_gradient(input), lax.stop_gradient(other))
    return input + (step - lax.stop_gradient(input))


@op(
    "torch.clamp",
    "torch.clip",
    "Tensor.clamp",
    "Tensor.clip",
    example={
        "x.clamp(0, 1)": "clamp(x, min=0, max=1)",
        "torch.clamp(x, min=1e-6)": "clamp(x, min=1e-6)",
        "x.clamp(max=1)": "clamp(x, max=1)",
    },
)
def clamp(input, min=None, max=None) -> Tensor:
    """Bounded from below and above."""
    return compat_clamp(input, min=min, max=max)


@op("torch.clamp_min", "Tensor.clamp_min", example={"x.clamp_min(0)": "clamp(x, min=0)"})
def clamp_min(input, min) -> Tensor:
    """Bounded from below."""
    return compat_clamp(input, min=min)


@op("torch.clamp_max", "Tensor.clamp_max", example={"x.clamp_max(1)": "clamp(x, max=1)"})
def clamp_max(input, max) -> Tensor:
    """Bounded from above."""
    return compat_clamp(input, max=max)


@op(
    "torch.nan_to_num",
    "Tensor.nan_to_num",
    example={
        "x.nan_to_num(0.0)": "jnp.nan_to_num(x)",
        "x.nan_to_num(nan=1.0)": "jnp.nan_to_num(x, nan=1.0)",
    },
)
def nan_to_num(input, nan=None, posinf=None, neginf=None) -> Tensor["same"]:
    """NaN and infinities replaced; infinities by the largest finite numbers."""
    return jnp.nan_to_num(input, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


# --- powers, logarithms, trigonometry ---------------------------------------------------------------------------


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


# --- activations and special functions with a place in the torch namespace --------------------------------------


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
    },
)
def logit(input, eps=None) -> Tensor["float"]:
    """log(x / (1 - x)), of x bounded to [eps, 1 - eps]."""
    if eps is None:
        return jax.scipy.special.logit(input)
    return jax.scipy.special.logit(jnp.clip(input, eps, 1 - eps))


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


@op("torch.i0", "torch.special.i0", "Tensor.i0", example={"x.i0()": "jax.scipy.special.i0(x)"})
def i0(input) -> Tensor["float"]:
    """Modified Bessel function of order 0."""
    return jax.scipy.special.i0(input)


@op(
    "torch.xlogy",
    "torch.special.xlogy",
    "Tensor.xlogy",
    example={"torch.xlogy(x, y)": "jax.scipy.special.xlogy(x, y)"},
)
def xlogy(input, other) -> Tensor["float"]:
    """input · log(other), 0 where input is 0."""
    return jax.scipy.special.xlogy(input, other)


# --- complex numbers --------------------------------------------------------------------------------------------


@op("torch.angle", "Tensor.angle", example={"x.angle()": "jnp.angle(x)"})
def angle(input) -> Tensor["float"]:
    """Argument of a complex number."""
    return jnp.angle(input)


@op("torch.real", "Tensor.real", example={"x.real": "x.real"})
def real(input) -> Tensor:
    """Real part."""
    return input.real


@op("torch.imag", "Tensor.imag", example={"x.imag": "x.imag"})
def imag(input) -> Tensor:
    """Imaginary part."""
    return input.imag


@op(
    "torch.conj",
    "torch.conj_physical",
    "Tensor.conj",
    "Tensor.conj_physical",
    example={"x.conj()": "x.conj()"},
)
def conj(input) -> Tensor["same"]:
    """Complex conjugate."""
    return input.conj()


@op(
    "torch.resolve_conj",
    "torch.resolve_neg",
    "Tensor.resolve_conj",
    "Tensor.resolve_neg",
    example={"x.resolve_conj()": "x"},
)
def resolve_conj(input) -> Tensor["same"]:
    """JAX has no lazy conjugation."""
    return input


@op(
    "torch.view_as_real",
    example={"torch.view_as_real(x)": "jnp.stack([x.real, x.imag], axis=-1)"},
)
def view_as_real(input) -> Tensor["float"]:
    """Real and imaginary parts on a new last axis."""
    return jnp.stack([input.real, input.imag], axis=-1)


@op(
    "torch.view_as_complex",
    example={"torch.view_as_complex(x)": "lax.complex(x[..., 0], x[..., 1])"},
)
def view_as_complex(input) -> Tensor["complex"]:
    """The last axis, of size two, as a complex number."""
    return lax.complex(input[..., 0], input[..., 1])
