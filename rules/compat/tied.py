"""Layers that get the parameters of others: a Linear with the table of an embedding, a bias that is shared."""

from __future__ import annotations

import jax
from flax import nnx


class TiedLinear(nnx.Module):
    """``linear`` with another layer's parameter as its weight, (out_features, in_features): one parameter, two names."""

    def __init__(self, weight: nnx.Param, linear: nnx.Linear):
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.weight = weight
        self.bias = linear.bias

    def __call__(self, x: jax.Array) -> jax.Array:
        output = x @ self.weight[...].T
        return output if self.bias is None else output + self.bias[...]


def set_bias(layer, value):
    """``layer.bias = value``, or none; Flax's layers say beside it whether they have one."""
    layer.bias = nnx.data(value)
    if hasattr(layer, "use_bias"):
        layer.use_bias = value is not None
