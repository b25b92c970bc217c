"""Reductions over all elements or over ``dim``, and running sums.

``var`` and ``std`` divide by n - 1 by default; ``max(dim)`` and its kin give values and indices; sums of booleans and
small integers are wide integers, as in JAX.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rules.compat.reduction import (
    cumulative_index,
    lower_median,
    max_along,
    median_of_elements,
    min_along,
    most_frequent,
    std_safe,
)
from rules.compat.words import as_axes
from rules.registry import axes, is_complex, op, surely, unsupported


@op(
    "torch.sum",
    "Tensor.sum",
    example={
        "x.sum()": "x.sum()",
        "x.sum(1)": "x.sum(axis=1)",
        "torch.sum(x, dim=(1, 2), keepdim=True)": "x.sum(axis=(1, 2), keepdims=True)",
    },
)
def sum(input, dim=None, keepdim=False, *, dtype=None, narrow=False) -> Tensor:
    """Sum; of integers of any width, a wide one (``narrow``: of fewer than 32 bits, maybe)."""
    if narrow and dtype is None:
        dtype = int
    return input.sum(axis=as_axes(axes(dim, input)), dtype=dtype, keepdims=keepdim)


@op("torch.nansum", "Tensor.nansum", example={"x.nansum(1)": "jnp.nansum(x, axis=1)"})
def nansum(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Sum, NaN counting as zero."""
    return jnp.nansum(input, axis=as_axes(axes(dim, input)), dtype=dtype, keepdims=keepdim)


@op(
    "torch.mean",
    "Tensor.mean",
    example={
        "x.mean(1)": "x.mean(axis=1)",
        "x.mean(dim=-1, keepdim=True)": "x.mean(axis=-1, keepdims=True)",
    },
)
def mean(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Mean."""
    return input.mean(axis=as_axes(axes(dim, input)), dtype=dtype, keepdims=keepdim)


@op("torch.nanmean", "Tensor.nanmean", example={"x.nanmean(1)": "jnp.nanmean(x, axis=1)"})
def nanmean(input, dim=None, keepdim=False, *, dtype=None) -> Tensor:
    """Mean of what is not NaN."""
    return jnp.nanmean(input, axis=as_axes(axes(dim, input)), dtype=dtype, keepdims=keepdim)


@op("torch.prod", "Tensor.prod", example={"x.prod()": "x.prod()", "x.prod(1)": "x.prod(axis=1)"})
def prod(input, dim=None, keepdim=False, *, dtype=None, narrow=False) -> Tensor:
    """Product; of integers of any width, a wide one."""
    if narrow and dtype is None:
        dtype = int
    return input.prod(axis=axes(dim, input), dtype=dtype, keepdims=keepdim)


@op(
    "torch.var",
    "Tensor.var",
    example={
        "x.var()": "jnp.var(x, ddof=1)",
        "x.var(1)": "jnp.var(x, axis=1, ddof=1)",
        "torch.var(x, dim=-1, correction=0, keepdim=True)": "jnp.var(x, axis=-1, keepdims=True)",
        "x.var(-1, unbiased=False)": "jnp.var(x, axis=-1)",
    },
)
def var(input, dim=None, unbiased=True, keepdim=False, *, correction=None) -> Tensor:
    """Variance; torch divides by n - 1 by default, JAX by n."""
    if surely(isinstance(dim, bool)):
        return jnp.var(input, ddof=int(dim))
    if correction is None:
        return jnp.var(input, axis=as_axes(axes(dim, input)), ddof=int(unbiased), keepdims=keepdim)
    return jnp.var(input, axis=as_axes(axes(dim, input)), ddof=correction, keepdims=keepdim)


@op("torch.std", "Tensor.std", example={"x.std(1)": "std_safe(x, axis=1)"})
def std(input, dim=None, unbiased=True, keepdim=False, *, correction=None) -> Tensor:
    """Standard deviation; its gradient is 0, not NaN, where all elements are equal."""
    if surely(isinstance(dim, bool)):
        return std_safe(input, correction=int(dim))
    if correction is None:
        return std_safe(
            input, axis=as_axes(axes(dim, input)), correction=int(unbiased), keepdims=keepdim
        )
    return std_safe(input, axis=as_axes(axes(dim, input)), correction=correction, keepdims=keepdim)


@op("torch.var_mean")
def var_mean(
    input, dim=None, unbiased=True, keepdim=False, *, correction=None
) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    if surely(isinstance(dim, bool)):
        return jnp.var(input, ddof=int(dim)), input.mean()
    ddof = int(unbiased) if correction is None else correction
    return (
        jnp.var(input, axis=as_axes(axes(dim, input)), ddof=ddof, keepdims=keepdim),
        input.mean(axis=as_axes(axes(dim, input)), keepdims=keepdim),
    )


@op("torch.std_mean")
def std_mean(
    input, dim=None, unbiased=True, keepdim=False, *, correction=None
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    if surely(isinstance(dim, bool)):
        return std_safe(input, correction=int(dim)), input.mean()
    ddof = int(unbiased) if correction is None else correction
    return (
        std_safe(input, axis=as_axes(axes(dim, input)), correction=ddof, keepdims=keepdim),
        input.mean(axis=as_axes(axes(dim, input)), keepdims=keepdim),
    )


# --- extremes ---------------------------------------------------------------------------------------------------


@op("torch.max", "Tensor.max", example={"torch.max(x, y)": "jnp.maximum(x, y)"})
def max_of_two(input, other: Tensor) -> Tensor:
    """Elementwise maximum."""
    return jnp.maximum(input, other)


@op("torch.max", "Tensor.max", example={"x.max()": "x.max()"})
def max_of_all(input) -> Tensor["same"]:
    """The largest element."""
    return input.max()


@op(
    "torch.max",
    "Tensor.max",
    fields=("values", "indices"),
    example={
        "x.max(1)": "(max_along(x, 1), x.argmax(axis=1))",
        "x.max(dim=1).values": "max_along(x, 1)",
        "x.max(1)[1]": "x.argmax(axis=1)",
    },
)
def max(input, dim: int, keepdim=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The largest elements along an axis, and where they are; of equal ones the first counts."""
    if surely(input.ndim == 0):
        return input, jnp.zeros((), int)
    return (
        max_along(input, dim, keepdims=keepdim),
        input.argmax(axis=dim, keepdims=True if keepdim else None),
    )


@op("torch.min", "Tensor.min", example={"torch.min(x, y)": "jnp.minimum(x, y)"})
def min_of_two(input, other: Tensor) -> Tensor:
    """Elementwise minimum."""
    return jnp.minimum(input, other)


@op("torch.min", "Tensor.min", example={"x.min()": "x.min()"})
def min_of_all(input) -> Tensor["same"]:
    """The smallest element."""
    return input.min()


@op(
    "torch.min",
    "Tensor.min",
    fields=("values", "indices"),
    example={
        "x.min(1)": "(min_along(x, 1), x.argmin(axis=1))",
        "x.min(dim=1).values": "min_along(x, 1)",
        "x.min(1)[1]": "x.argmin(axis=1)",
    },
)
def min(input, dim: int, keepdim=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The smallest elements along an axis, and where they are; of equal ones the first counts."""
    if surely(input.ndim == 0):
        return input, jnp.zeros((), int)
    return (
        min_along(input, dim, keepdims=keepdim),
        input.argmin(axis=dim, keepdims=True if keepdim else None),
    )


@op(
    "torch.amax",
    "Tensor.amax",
    example={"x.amax(1)": "x.max(axis=1)", "x.amax(dim=(1, 2))": "x.max(axis=(1, 2))"},
)
def amax(input, dim=(), keepdim=False) -> Tensor["same"]:
    """The largest elements along axes."""
    return input.max(axis=as_axes(axes(dim, input)), keepdims=keepdim)


@op("torch.amin", "Tensor.amin", example={"x.amin(1)": "x.min(axis=1)"})
def amin(input, dim=(), keepdim=False) -> Tensor["same"]:
    """The smallest elements along axes."""
    return input.min(axis=as_axes(axes(dim, input)), keepdims=keepdim)


@op(
    "torch.aminmax",
    "Tensor.aminmax",
    fields=("min", "max"),
    example={"x.aminmax()": "(x.min(), x.max())"},
)
def aminmax(input, *, dim=None, keepdim=False) -> tuple[Tensor["same"], Tensor["same"]]:
    """Smallest and largest elements."""
    return (
        input.min(axis=axes(dim, input), keepdims=keepdim),
        input.max(axis=axes(dim, input), keepdims=keepdim),
    )


@op(
    "torch.argmax",
    "Tensor.argmax",
    example={"x.argmax()": "x.argmax()", "x.argmax(dim=-1)": "x.argmax(axis=-1)"},
)
def argmax(input, dim=None, keepdim=False) -> Tensor["int"]:
    """Where the largest element is."""
    return input.argmax(axis=axes(dim, input), keepdims=True if keepdim else None)


@op("torch.argmin", "Tensor.argmin", example={"x.argmin(1)": "x.argmin(axis=1)"})
def argmin(input, dim=None, keepdim=False) -> Tensor["int"]:
    """Where the smallest element is."""
    return input.argmin(axis=axes(dim, input), keepdims=True if keepdim else None)


@op("torch.median", "Tensor.median", example={"x.median()": "median_of_elements(x)"})
def median_of_all(input) -> Tensor["same"]:
    """The median; of an even number, the lower one."""
    return median_of_elements(input)


@op(
    "torch.median",
    "Tensor.median",
    fields=("values", "indices"),
    example={"x.median(1)": "lower_median(x, 1)"},
)
def median(input, dim: int, keepdim=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The medians along an axis, and where they are."""
    return lower_median(input, axes(dim, input), keepdims=keepdim)


@op("torch.nanmedian", "Tensor.nanmedian")
def nanmedian_of_all(input) -> Tensor["same"]:
    """The median of what is not NaN."""
    return median_of_elements(input, ignore_nan=True)


@op("torch.nanmedian", "Tensor.nanmedian", fields=("values", "indices"))
def nanmedian(input, dim: int, keepdim=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The medians along an axis of what is not NaN."""
    return lower_median(input, axes(dim, input), keepdims=keepdim, ignore_nan=True)


@op(
    "torch.mode",
    "Tensor.mode",
    fields=("values", "indices"),
    example={"x.mode(1)": "most_frequent(x, axis=1)"},
)
def mode(input, dim=-1, keepdim=False) -> tuple[Tensor["same"], Tensor["int"]]:
    """The most frequent value along an axis (the smallest of several) and where it last occurs."""
    return most_frequent(input, axis=dim, keepdims=keepdim)


@op(
    "torch.quantile",
    "Tensor.quantile",
    example={"torch.quantile(x, 0.5, dim=1)": "jnp.quantile(x, 0.5, axis=1)"},
)
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear") -> Tensor["float"]:
    """Quantiles, interpolated."""
    if surely(input.ndim == 0):
        return jnp.quantile(input[None], q, axis=0, method=interpolation)
    return jnp.quantile(input, q, axis=axes(dim, input), method=interpolation, keepdims=keepdim)


@op(
    "torch.nanquantile",
    "Tensor.nanquantile",
    example={"torch.nanquantile(x, 0.5, dim=1)": "jnp.nanquantile(x, 0.5, axis=1)"},
)
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear") -> Tensor["float"]:
    """Quantiles of what is not NaN."""
    if surely(input.ndim == 0):
        return jnp.nanquantile(input[None], q, axis=0, method=interpolation)
    return jnp.nanquantile(input, q, axis=axes(dim, input), method=interpolation, keepdims=keepdim)


# --- truth and counts -------------------------------------------------------------------------------------------


@op(
    "torch.any",
    "Tensor.any",
    example={"mask.any()": "mask.any()", "mask.any(dim=1)": "mask.any(axis=1)"},
)
def any(input, dim=None, keepdim=False) -> Tensor["bool"]:
    """Whether any element is nonzero."""
    if isinstance(dim, (list, tuple)) and not surely(
        input.ndim == 0
    ):  # of no axes: of each element
        return input.any(axis=tuple(dim), keepdims=keepdim)
    return input.any(axis=as_axes(axes(dim, input)), keepdims=keepdim)


@op(
    "torch.all",
    "Tensor.all",
    example={"mask.all()": "mask.all()", "mask.all(dim=1)": "mask.all(axis=1)"},
)
def all(input, dim=None, keepdim=False) -> Tensor["bool"]:
    """Whether all elements are nonzero."""
    if isinstance(dim, (list, tuple)) and not surely(
        input.ndim == 0
    ):  # of no axes: of each element
        return input.all(axis=tuple(dim), keepdims=keepdim)
    return input.all(axis=as_axes(axes(dim, input)), keepdims=keepdim)


@op(
    "torch.count_nonzero",
    "Tensor.count_nonzero",
    example={"x.count_nonzero(dim=1)": "jnp.count_nonzero(x, axis=1)"},
)
def count_nonzero(input, dim=None) -> Tensor["int"]:
    """How many elements are nonzero."""
    return jnp.count_nonzero(input, axis=as_axes(axes(dim, input)))


# --- logarithms of sums -------------------------------------------------------------------------------


@op(
    "torch.logsumexp",
    "torch.special.logsumexp",
    "Tensor.logsumexp",
    example={"x.logsumexp(dim=1)": "jax.nn.logsumexp(x, axis=1)"},
)
def logsumexp(input, dim, keepdim=False) -> Tensor["float"]:
    """log Σ exp(input)."""
    return jax.nn.logsumexp(input, axis=as_axes(axes(dim, input)), keepdims=keepdim)


# --- running sums and differences -------------------------------------------------------------------------------


@op("torch.cumsum", "Tensor.cumsum", example={"x.cumsum(1)": "x.cumsum(axis=1)"})
def cumsum(input, dim, *, dtype=None, narrow=False) -> Tensor:
    """Running sum; of booleans and small integers, a wide integer."""
    if narrow and dtype is None:
        dtype = int
    if surely(input.ndim == 0):
        return input.sum(dtype=dtype)
    return input.cumsum(axis=dim, dtype=dtype)


@op("torch.cumprod", "Tensor.cumprod", example={"x.cumprod(1)": "x.cumprod(axis=1)"})
def cumprod(input, dim, *, dtype=None, narrow=False) -> Tensor:
    """Running product; of booleans and small integers, a wide integer."""
    if narrow and dtype is None:
        dtype = int
    if surely(input.ndim == 0):
        return input.prod(dtype=dtype)
    return input.cumprod(axis=dim, dtype=dtype)


@op(
    "torch.logcumsumexp",
    "Tensor.logcumsumexp",
    example={"x.logcumsumexp(1)": "lax.cumlogsumexp(x, axis=1)"},
)
def logcumsumexp(input, dim) -> Tensor["float"]:
    """Running log Σ exp."""
    if surely(is_complex(input)):
        unsupported("logcumsumexp of complex numbers, whose phase differs by multiples of 2π")
    if surely(input.ndim == 0):
        return input
    if isinstance(dim, int) and dim >= 0:
        return lax.cumlogsumexp(input, axis=dim)
    return lax.cumlogsumexp(input, axis=dim % input.ndim)


@op("torch.cummax", "Tensor.cummax", fields=("values", "indices"))
def cummax(input, dim) -> tuple[Tensor["same"], Tensor["int"]]:
    """Running maximum, and where it was last seen."""
    return cumulative_index(input, dim, jnp.greater_equal)


@op("torch.cummin", "Tensor.cummin", fields=("values", "indices"))
def cummin(input, dim) -> tuple[Tensor["same"], Tensor["int"]]:
    """Running minimum, and where it was last seen."""
    return cumulative_index(input, dim, jnp.less_equal)


@op(
    "torch.diff",
    "Tensor.diff",
    example={"x.diff()": "jnp.diff(x)", "x.diff(dim=1)": "jnp.diff(x, axis=1)"},
)
def diff(input, n=1, dim=-1, prepend=None, append=None) -> Tensor["same"]:
    """n-th difference along an axis."""
    return jnp.diff(input, n=n, axis=dim, prepend=prepend, append=append)


@op(
    "torch.trapezoid",
    "torch.trapz",
    example={"torch.trapezoid(x, dx=0.1)": "jnp.trapezoid(x, dx=0.1)"},
)
def trapezoid(y, x=None, *, dx=1, dim=-1) -> Tensor["float"]:
    """Integral by the trapezoidal rule."""
    return jnp.trapezoid(y, x=x, dx=dx, axis=dim)


@op("torch.cumulative_trapezoid")
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1) -> Tensor["float"]:
    """Running integral by the trapezoidal rule."""
    y = jnp.moveaxis(y, dim, -1)
    if x is not None:
        dx = jnp.diff(x if x.ndim == 1 else jnp.moveaxis(x, dim, -1))
    return jnp.moveaxis(jnp.cumsum(dx * (y[..., 1:] + y[..., :-1]) / 2, axis=-1), -1, dim)
