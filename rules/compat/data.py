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
