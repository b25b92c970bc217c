"""Initial values that jax.nn.initializers lacks (torch.nn.init)."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np


def dirac(shape, dtype, groups=1):
    """Kernel (O, I, …) whose centre maps input channel c to output channel c, within each group."""
    kernel = np.zeros(shape)
    outs = shape[0] // groups
    centre = tuple(size // 2 for size in shape[2:])
    for group in range(groups):
        for channel in range(min(outs, shape[1])):
            kernel[(group * outs + channel, channel, *centre)] = 1
    return jnp.asarray(kernel, dtype)


def sparse(shape, dtype, sparsity, std=0.01, *, rngs):
    """N(0, std²) of shape (rows, columns) with ceil(sparsity · rows) zeros in each column."""
    zeros = math.ceil(sparsity * shape[0])
    order = jnp.argsort(rngs.params.uniform(shape), axis=0)
    return jnp.where(order < zeros, 0, std * rngs.params.normal(shape, dtype))
