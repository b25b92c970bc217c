"""Functions that stand for torch.nn's stateless layers where jax.nn has none."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from rules.compat.padding import pad_axes


def is_identity(layer):
    """Whether a layer is what ``nn.Identity`` became."""
    return layer is identity


def is_layer_of(layer, *makers):
    """Whether a layer without parameters is one of these functions, or such with these first arguments."""
    if type(layer).__name__ == "Stateless":
        layer = layer.function
    given = ()
    if isinstance(layer, functools.partial):
        layer, given = layer.func, layer.args
    pairs = (one if isinstance(one, tuple) else (one,) for one in makers)
    return any(layer is one and given[: len(first)] == tuple(first) for one, *first in pairs)


def identity(input):
    """The input itself."""
    return input


def flatten(input, start_dim=1, end_dim=-1):
    """Axes ``start_dim`` … ``end_dim`` made one."""
    start, stop = start_dim % input.ndim, end_dim % input.ndim + 1
    return input.reshape(*input.shape[:start], -1, *input.shape[stop:])


def unflatten(input, dim, sizes):
    """Axis ``dim`` split into ``sizes``, one of which may be -1."""
    dim = dim % input.ndim
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])


def tanhshrink(input):
    """x - tanh(x)."""
    return input - jnp.tanh(input)


def softmin(input, axis=None):
    """softmax of -x, by default over axis 0 for rank 0, 1 and 3 and axis 1 for others."""
    return softmax(-input, axis)


def softmax(input, axis=None):
    """Softmax, by default over axis 0 for rank 0, 1 and 3 and axis 1 for others, as in torch."""
    default = 0 if input.ndim in (0, 1, 3) else 1
    return jax.nn.softmax(input, default if axis is None else axis)


def log_softmax(input, axis=None):
    """Log softmax, by default over axis 0 for rank 0, 1 and 3 and axis 1 for others, as in torch."""
    default = 0 if input.ndim in (0, 1, 3) else 1
    return jax.nn.log_softmax(input, default if axis is None else axis)


def pad_sides(input, rank, padding, mode="constant", value=0):
    """Pad the last ``rank`` axes on both sides by an int, or by (before, after) from the last axis on."""
    return pad_axes(
        input, (padding,) * (2 * rank) if hasattr(padding, "__index__") else padding, mode, value
    )
