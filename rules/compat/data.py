"""Writing the numbers of a parameter past its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def with_data(weight: jax.Array, data: jax.Array) -> jax.Array:
    """``data`` as the numbers of ``weight``, as if they had been its own all along: ``weight.data = data`` of torch.

    Gradients with respect to the result are those of ``weight``, and ``data`` gets none. Shapes: ``data`` broadcasts
    to that of ``weight``, whose dtype stays.
    """
    data = jnp.broadcast_to(jax.lax.stop_gradient(data), weight.shape).astype(weight.dtype)
    return data + (weight - jax.lax.stop_gradient(weight))


def legacy_tensor(data, dtype) -> jax.Array:
    """``torch.Tensor(data)`` in a dtype: zeros of that size for a number, else the values of a list or array.

    Raises:
      TypeError: a tuple, which in torch may be a size or values, and here is not told from the other.
    """
    if isinstance(data, tuple):
        raise TypeError("a tuple may be a size or values; hand over a list of values")
    return jnp.empty(data, dtype) if isinstance(data, int) else jnp.array(data, dtype)
