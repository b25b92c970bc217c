"""Comparisons, predicates and logical operations: results are boolean tensors, or Python bools where torch says so."""

from __future__ import annotations

import jax.numpy as jnp

from rules.registry import op


@op("torch.eq", "Tensor.eq", "Tensor.__eq__", example={"x.eq(y)": "x == y", "x == 0": "x == 0"})
def eq(input, other) -> Tensor["bool"]:
    """Elementwise equality."""
    return input == other


@op(
    "torch.ne",
    "torch.not_equal",
    "Tensor.ne",
    "Tensor.not_equal",
    "Tensor.__ne__",
    example={"x.ne(y)": "x != y"},
)
def ne(input, other) -> Tensor["bool"]:
    """Elementwise difference."""
    return input != other


@op(
    "torch.lt",
    "torch.less",
    "Tensor.lt",
    "Tensor.less",
    "Tensor.__lt__",
    example={"x.lt(y)": "x < y"},
)
def lt(input, other) -> Tensor["bool"]:
    """input < other."""
    return input < other


@op(
    "torch.le",
    "torch.less_equal",
    "Tensor.le",
    "Tensor.less_equal",
    "Tensor.__le__",
    example={"x.le(y)": "x <= y"},
)
def le(input, other) -> Tensor["bool"]:
    """input ≤ other."""
    return input <= other


@op(
    "torch.gt",
    "torch.greater",
    "Tensor.gt",
    "Tensor.greater",
    "Tensor.__gt__",
    example={"x.gt(y)": "x > y"},
)
def gt(input, other) -> Tensor["bool"]:
    """input > other."""
    return input > other


@op(
    "torch.ge",
    "torch.greater_equal",
    "Tensor.ge",
    "Tensor.greater_equal",
    "Tensor.__ge__",
    example={"x.ge(y)": "x >= y"},
)
def ge(input, other) -> Tensor["bool"]:
    """input ≥ other."""
    return input >= other


@op("torch.equal", "Tensor.equal", example={"torch.equal(x, y)": "jnp.array_equal(x, y)"})
def equal(input, other) -> Tensor["bool"]:
    """Whether two tensors have the same shape and elements: in JAX an array, which a program is not to branch on."""
    return jnp.array_equal(input, other)


@op("torch.allclose", "Tensor.allclose", example={"torch.allclose(x, y)": "jnp.allclose(x, y)"})
def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Tensor["bool"]:
    """Whether all elements are close: in JAX an array."""
    return jnp.allclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@op("torch.isclose", "Tensor.isclose", example={"torch.isclose(x, y)": "jnp.isclose(x, y)"})
def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False) -> Tensor["bool"]:
    """Which elements are close."""
    return jnp.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan)


@op("torch.isfinite", "Tensor.isfinite", example={"x.isfinite()": "jnp.isfinite(x)"})
def isfinite(input) -> Tensor["bool"]:
    """Neither NaN nor infinite."""
    return jnp.isfinite(input)


@op("torch.isinf", "Tensor.isinf", example={"x.isinf()": "jnp.isinf(x)"})
def isinf(input) -> Tensor["bool"]:
    """Infinite."""
    return jnp.isinf(input)


@op("torch.isposinf", "Tensor.isposinf", example={"x.isposinf()": "jnp.isposinf(x)"})
def isposinf(input) -> Tensor["bool"]:
    """+inf."""
    return jnp.isposinf(input)


@op("torch.isneginf", "Tensor.isneginf", example={"x.isneginf()": "jnp.isneginf(x)"})
def isneginf(input) -> Tensor["bool"]:
    """-inf."""
    return jnp.isneginf(input)


@op("torch.isnan", "Tensor.isnan", example={"x.isnan()": "jnp.isnan(x)"})
def isnan(input) -> Tensor["bool"]:
    """NaN."""
    return jnp.isnan(input)


@op("torch.isreal", "Tensor.isreal", example={"x.isreal()": "jnp.isreal(x)"})
def isreal(input) -> Tensor["bool"]:
    """No imaginary part."""
    return jnp.isreal(input)


@op("torch.isin", example={"torch.isin(i, j)": "jnp.isin(i, j)"})
def isin(elements, test_elements, *, assume_unique=False, invert=False) -> Tensor["bool"]:
    """Which elements occur among others."""
    return jnp.isin(elements, test_elements, invert=invert)


@op(
    "torch.maximum",
    "Tensor.maximum",
    example={"torch.maximum(x, y)": "jnp.maximum(x, y)"},
)
def maximum(input, other) -> Tensor:
    """The larger of two, NaN if either is."""
    return jnp.maximum(input, other)


@op("torch.minimum", "Tensor.minimum", example={"torch.minimum(x, y)": "jnp.minimum(x, y)"})
def minimum(input, other) -> Tensor:
    """The smaller of two, NaN if either is."""
    return jnp.minimum(input, other)


@op(
    "torch.fmax",
    "Tensor.fmax",
    example={"torch.fmax(x, y)": "jnp.where((x >= y) | jnp.isnan(y), x, y)"},
)
def fmax(input, other) -> Tensor:
    """The larger of two, NaN only if both are."""
    return jnp.where((input >= other) | jnp.isnan(other), input, other)


@op(
    "torch.fmin",
    "Tensor.fmin",
    example={"torch.fmin(x, y)": "jnp.where((x <= y) | jnp.isnan(y), x, y)"},
)
def fmin(input, other) -> Tensor:
    """The smaller of two, NaN only if both are."""
    return jnp.where((input <= other) | jnp.isnan(other), input, other)


@op(
    "torch.where",
    example={
        "torch.where(mask, x, y)": "jnp.where(mask, x, y)",
        "torch.where(mask, x, 0.0)": "jnp.where(mask, x, 0.0)",
    },
)
def where(condition, input, other) -> Tensor:
    """Elements of input where the condition holds, of other elsewhere."""
    return jnp.where(condition, input, other)


@op("Tensor.where", example={"x.where(mask, y)": "jnp.where(mask, x, y)"})
def where_method(input, condition, other) -> Tensor["same"]:
    """Elements of the tensor where the condition holds, of other elsewhere."""
    return jnp.where(condition, input, other)


@op(
    "torch.logical_and",
    "Tensor.logical_and",
    example={"torch.logical_and(x, y)": "jnp.logical_and(x, y)"},
)
def logical_and(input, other) -> Tensor["bool"]:
    """Both are nonzero."""
    return jnp.logical_and(input, other)


@op("torch.logical_or", "Tensor.logical_or", example={"x.logical_or(y)": "jnp.logical_or(x, y)"})
def logical_or(input, other) -> Tensor["bool"]:
    """Either is nonzero."""
    return jnp.logical_or(input, other)


@op(
    "torch.logical_xor", "Tensor.logical_xor", example={"x.logical_xor(y)": "jnp.logical_xor(x, y)"}
)
def logical_xor(input, other) -> Tensor["bool"]:
    """Exactly one is nonzero."""
    return jnp.logical_xor(input, other)


@op("torch.logical_not", "Tensor.logical_not", example={"x.logical_not()": "jnp.logical_not(x)"})
def logical_not(input) -> Tensor["bool"]:
    """Is zero."""
    return jnp.logical_not(input)
