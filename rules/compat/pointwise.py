"""Pointwise functions that JAX lacks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def truncated_division(x: jax.Array, y: jax.Array) -> jax.Array:
    """x / y rounded towards zero, in the dtype of the operands; any shapes that broadcast."""
    dtype = jnp.result_type(x, y)
    if jnp.issubdtype(dtype, jnp.inexact):
        return jnp.trunc(x / y)
    return lax.div(*jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(y, dtype)))


def clamp(x: jax.Array, min=None, max=None) -> jax.Array:
    """``x`` bounded to [min, max] (numbers or arrays); the gradient at a bound is 1, in jnp.clip it is 1/2; of NaN it is 0."""
    if min is not None:
        x = jnp.where(x >= min, x, jnp.where(x < min, min, lax.stop_gradient(x)))
    if max is not None:
        x = jnp.where(x <= max, x, jnp.where(x > max, max, lax.stop_gradient(x)))
    return x


def larger(a, b):
    """Python's ``max(a, b)`` of numbers or 0-d arrays: b where it is larger, else a, which has the gradient then."""
    return jnp.where(b > a, b, a)


def smaller(a, b):
    """Python's ``min(a, b)`` of numbers or 0-d arrays: b where it is smaller, else a, which has the gradient then."""
    return jnp.where(b < a, b, a)


def absolute(x: jax.Array) -> jax.Array:
    """|x|; its gradient at 0 is 0, in jnp.abs it is 1."""
    return jnp.where(x == 0, 0, jnp.abs(jnp.where(x == 0, 1, x)))


def atan2(y: jax.Array, x: jax.Array) -> jax.Array:
    """Angle of the point (x, y); its gradient at the origin is 0, in jnp.arctan2 it is NaN."""
    origin = (x == 0) & (y == 0)
    angle = jnp.arctan2(jnp.where(origin, 1, y), x)
    return jnp.where(origin, lax.stop_gradient(jnp.arctan2(y, x)), angle)


def angle(x: jax.Array) -> jax.Array:
    """Argument of x: 0 for -0, where it is π in jnp.angle; its gradient at 0 is 0, in jnp.angle it is NaN."""
    if not jnp.iscomplexobj(x):
        found = jnp.where(x < 0, jnp.pi, jnp.where(jnp.isnan(x), jnp.nan, 0))
        return found.astype(jnp.result_type(x, float))
    return jnp.where(x == 0, lax.stop_gradient(jnp.angle(x)), jnp.angle(jnp.where(x == 0, 1, x)))


def copysign(x: jax.Array, y: jax.Array) -> jax.Array:
    """x with the sign of y; its gradient at 0 is 0, in jnp.copysign it is 1 or -1."""
    return jnp.copysign(jnp.where(x == 0, lax.stop_gradient(x), x), y)


@jax.custom_jvp
def _divided(x, y):
    return x / y


_divided.defjvps(lambda dx, out, x, y: dx / y, lambda dy, out, x, y: -dy * (out / y))


def quotient(x, y):
    """x / y for a y that may be below 1e-19: JAX's derivative by y, -x y ** -2, is NaN there for x = 0."""
    dtype = jnp.result_type(x, y, float)
    return _divided(jnp.asarray(x, dtype), jnp.asarray(y, dtype))


def power(x, y):
    """x ** y; its gradient at 0 ** 0 is 0, in jnp.power it is NaN for an exponent that is no integer."""
    return jnp.where((x == 0) & (y == 0), 1, x) ** y


def float_power(x, y):
    """x ** y in float32 at least (torch's ``float_power`` is always float64)."""
    wide = [jnp.asarray(v, jnp.promote_types(jnp.result_type(v), jnp.float32)) for v in (x, y)]
    return jnp.float_power(*wide)
