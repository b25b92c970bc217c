"""Rounding, signs and bounds, one element at a time. Half-way cases round to even in both libraries."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.compat.pointwise import clamp as compat_clamp
from rules.compat.pointwise import copysign as compat_copysign
from rules.registry import is_bool, is_complex, op, surely


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


@op("torch.copysign", "Tensor.copysign", example={"torch.copysign(x, y)": "copysign(x, y)"})
def copysign(input, other) -> Tensor:
    """Magnitude of input, sign of other."""
    return compat_copysign(input, other)


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
