"""Arithmetic, one element at a time: functions, methods and operators of torch that take and give tensors.

Integers divide to floats and half-way cases round to even in both libraries; ``//`` floors and ``%`` takes the sign
of the divisor in both. What differs: ``alpha``, rounding modes, bounds of ``clamp``, weights of ``lerp``.
"""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.pointwise import absolute, float_power, power, truncated_division
from rules.registry import is_integer, is_tensor, op, surely, unsupported


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


@op(
    "Tensor.__rtruediv__",
    "Tensor.__rdiv__",
    example={"1 / x": "1 / x", "x.__rdiv__(1)": "1 / x"},
)
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


@op(
    "torch.pow",
    "Tensor.pow",
    "Tensor.__pow__",
    example={"x.pow(2)": "x**2", "x**i": "x**i", "x**y": "power(x, y)"},
)
def pow(input, exponent) -> Tensor:
    """Power."""
    if surely(is_integer(exponent) or is_integer(input)):
        return input**exponent
    if surely(not is_tensor(exponent)) and surely(exponent != 0):
        return input**exponent
    return power(input, exponent)


@op("Tensor.__rpow__", example={"2**x": "2**x"})
def rpow(input, other) -> Tensor:
    """other to the power input."""
    if surely(is_integer(input) and is_integer(other) and bool((input < 0).any())):
        unsupported("negative powers of integers")
    return other**input


@op(
    "torch.float_power",
    "Tensor.float_power",
    example={
        "torch.float_power(i, 2)": "jnp.float_power(i, 2)",
        "torch.float_power(x, 2)": "float_power(x, 2)",
    },
)
def wide_power(input, exponent) -> Tensor["float"]:
    """Power in double precision, which is single in JAX, never half."""
    if surely(is_tensor(input) and is_integer(input) and not is_tensor(exponent)):
        return jnp.float_power(input, exponent)
    return float_power(input, exponent)


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
