"""Activations that hold a parameter or draw random numbers."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx


class PReLU(nnx.Module):
    """x where x > 0, else weight · x; ``weight`` has one element or one per channel (axis 1)."""

    def __init__(self, num_parameters=1, init=0.25, dtype=None, *, rngs: nnx.Rngs | None = None):
        self.num_parameters = num_parameters
        self.weight = nnx.Param(jnp.full(num_parameters, init, dtype))

    def __call__(self, input):
        shape = (-1, *(1,) * (input.ndim - 2)) if self.num_parameters > 1 else ()
        weight = self.weight[...].reshape(shape)
        return jnp.where(input > 0, input, weight * input)


class RReLU(nnx.Module):
    """x where x ≥ 0, else slope · x; the slope is U(lower, upper) in training, else their mean."""

    def __init__(self, lower=1 / 8, upper=1 / 3, *, rngs: nnx.Rngs):
        self.lower, self.upper = lower, upper
        self.deterministic = False
        self.rngs = rngs.dropout.fork()

    def __call__(self, input):
        slope = (self.lower + self.upper) / 2
        if not self.deterministic:
            slope = self.rngs.uniform(input.shape, input.dtype, self.lower, self.upper)
        return jnp.where(input > 0, input, slope * input)
