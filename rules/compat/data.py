"""Writing the numbers of a parameter past its gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np


def with_data(tensor: jax.Array, data: jax.Array) -> jax.Array:
    """``data`` as the numbers of ``tensor``, as if they had been its own all along: ``tensor.data = data`` of torch.

    Gradients with respect to the result are those of ``tensor``, and ``data`` gets none. The dtype stays; where
    ``data`` has another shape so has the result, which nothing is differentiated through then.
    """
    data = jax.lax.stop_gradient(data).astype(tensor.dtype)
    if data.shape != tensor.shape or not jnp.issubdtype(tensor.dtype, jnp.inexact):
        return data
    zero = tensor - jax.lax.stop_gradient(tensor)
    return data + jnp.where(jnp.isfinite(tensor), zero, 0)


def with_new_data(tensor: jax.Array, data: jax.Array) -> jax.Array:
    """``tensor.data = data`` of torch where ``data`` may have another dtype: the result has it, and no gradient then."""
    data = jax.lax.stop_gradient(data)
    return with_data(tensor, data) if data.dtype == tensor.dtype else data


def with_diagonal(x: jax.Array, value, offset=0) -> jax.Array:
    """``x`` with other values on a diagonal of its first two axes: what is written to ``x.diagonal(offset)`` in torch.

    Shapes: x (R, C, …), value (…, D) or what broadcasts to it.
    """
    shown = jnp.diagonal(x, offset)
    place = np.arange(shown.shape[-1])
    value = jnp.moveaxis(jnp.broadcast_to(value, shown.shape), -1, 0)
    return x.at[place + max(-offset, 0), place + max(offset, 0)].set(value)


def single_numbers(data):
    """Numbers, and tensors of one element in place of some, as torch.tensor takes them out of (nested) lists."""
    if isinstance(data, (list, tuple)):
        return [single_numbers(one) for one in data]
    return data.reshape(()) if isinstance(data, jax.Array) else data


def legacy_tensor(data, dtype) -> jax.Array:
    """``torch.Tensor(data)`` in a dtype: zeros of that size for a number, else the values of a list or array.

    Raises:
      TypeError: a tuple, which in torch may be a size or values, and here is not told from the other.
    """
    if isinstance(data, tuple):
        raise TypeError("a tuple may be a size or values; hand over a list of values")
    if isinstance(data, int):
        return jnp.empty(data, dtype)
    values = jnp.array(data, dtype)
    return values if isinstance(data, jax.Array) else jax.lax.stop_gradient(values)


def size_or_values(data, dtype) -> jax.Array:
    """``torch.Tensor(data)`` in a dtype where others are made of the same: of a tensor they would share its memory.

    Raises:
      TypeError: an array, and a tuple, which in torch may be a size or values.
    """
    if isinstance(data, jax.Array):
        raise TypeError("what is made of one array would share its memory; hand over a size")
    return legacy_tensor(data, dtype)


def as_tensor(data, dtype=None) -> jax.Array:
    """``torch.as_tensor(data)``: an array keeps its gradient, the numbers of a list have none."""
    values = jnp.asarray(data, dtype=dtype)
    return values if isinstance(data, jax.Array) else jax.lax.stop_gradient(values)


def data_of(value):
    """``value.data``: the numbers of an array without its gradient, or the attribute of any other object."""
    return jax.lax.stop_gradient(value) if isinstance(value, jax.Array) else value.data


def in_dtype_of(old, new):
    """``new`` in the dtype of an array that it is written over; of a number it takes the place as it is."""
    return new.astype(old.dtype) if hasattr(old, "dtype") else new
