"""The dtype of arithmetic where torch and JAX differ."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def beside(x: jax.Array, number: jax.Array) -> jax.Array:
    """A number of no dimensions as it is computed with beside ``x``, whose float type torch keeps."""
    floats = jnp.issubdtype(x.dtype, jnp.floating) and jnp.issubdtype(number.dtype, jnp.floating)
    return number.astype(x.dtype) if x.ndim and not number.ndim and floats else number


def in_torch_dtype(function, a: jax.Array, b: jax.Array) -> jax.Array:
    """``function(a, b)``; where one of the two has no dimensions, the float type of the other is kept."""
    return function(beside(b, a), beside(a, b))


def as_key(dtype):
    """A dtype as dicts and sets find it, which ``x.dtype`` of an array is; None stays."""
    return None if dtype is None else jnp.dtype(dtype)


def dtype_name(dtype):
    """What torch calls a dtype: ``torch.float32``."""
    return "None" if dtype is None else f"torch.{jnp.dtype(dtype)}"


def size_name(shape):
    """A shape as torch writes it: ``torch.Size([2, 3])``."""
    return f"torch.Size({list(shape)})"
