"""Python numbers beside arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def as_element(value: float, x: jax.Array) -> float:
    """A number as it meets an array: beside floats a float, however large; integers have 32 bits and JAX raises."""
    return float(value) if jnp.issubdtype(x.dtype, jnp.inexact) else value


def as_number(value):
    """A number of numpy's as a Python number, which leaves an array its dtype; an array as it is."""
    return value.item() if isinstance(value, np.generic) else value


def number(x):
    """The Python number that an array of one element holds; while JAX traces, the element without its gradient."""
    x = jnp.reshape(x, ())
    return lax.stop_gradient(x) if isinstance(x, jax.core.Tracer) else x.item()


def float_number(x):
    """What Python's ``float`` makes of an array of one element; while JAX traces, an array without its gradient."""
    x = jnp.reshape(x, ())
    if not isinstance(x, jax.core.Tracer):
        return float(x)
    x = lax.stop_gradient(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32)


def not_below(number: float) -> np.float32:
    """The smallest float32 that is not below a number of double precision.

    What a float32 x says of ``x < number`` and ``x >= number`` in double precision, it says of that.
    """
    rounded = np.float32(number)
    return rounded if float(rounded) >= number else np.nextafter(rounded, np.float32(np.inf))


def not_above(number: float) -> np.float32:
    """The largest float32 that is not above a number of double precision: for ``x > number`` and ``x <= number``."""
    rounded = np.float32(number)
    return rounded if float(rounded) <= number else np.nextafter(rounded, np.float32(-np.inf))
