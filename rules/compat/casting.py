"""``module.to(dtype)``: parameters and buffers in another type."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx


def cast_module(module, *targets, dtype=None, **places):
    """``module.to(…)`` of torch: a dtype, or an array of it, is what real and complex numbers become; a place is nothing.

    A layer without state is a plain function, and stays as it is.

    Raises:
      TypeError: the dtype is not one of floating point, nor complex.
    """
    for target in (*targets, dtype):
        if target is None or isinstance(target, (str, int, jax.Device)):
            continue
        wanted = target.dtype if isinstance(target, jax.Array) else jnp.dtype(target)
        if not isinstance(target, jax.Array) and not jnp.issubdtype(wanted, jnp.inexact):
            raise TypeError(f"a module takes a dtype of floating point, not {wanted}")
        for _, part in nnx.iter_graph(module) if isinstance(module, nnx.Module) else ():
            if isinstance(part, nnx.Variable) and _is_cast(part.dtype, wanted):
                part.set_value(part[...].astype(wanted))
            elif isinstance(part, nnx.Embed):
                part.dtype = wanted  # what it hands out is of this type
    return module


def _is_cast(dtype, wanted):
    """Whether numbers of a type become another: those of floating point, and complex ones complex."""
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return jnp.issubdtype(wanted, jnp.complexfloating)
    return jnp.issubdtype(dtype, jnp.floating)
