"""``EinMix`` of einops: a weight, multiplied into the axes that a pattern names."""

from __future__ import annotations

import math

import einops
from flax import nnx


class EinMix(nnx.Module):
    """``pattern`` of the input and the axes of a weight as one einsum; parentheses split and join axes.

    Args:
      pattern: input axes -> output axes, ``"b n (h d) -> b h n e"``.
      weight_shape: the axes of the weight, each with a length in ``axes_lengths``.
      bias_shape: the axes of the output that the bias has; None for no bias.
    """

    def __init__(self, pattern, weight_shape, bias_shape=None, *, rngs: nnx.Rngs, **axes_lengths):
        self.sides = tuple(side.strip() for side in pattern.split("->"))
        flat = [side.replace("(", " ").replace(")", " ").split() for side in self.sides]
        left, right = ([name for name in side if name != "1"] for side in flat)
        self.left, self.right, self.axes = " ".join(left), " ".join(right), weight_shape
        self.lengths = {name: size for name, size in axes_lengths.items() if name in left}
        names = weight_shape.split()
        fan_in = math.prod(axes_lengths[name] for name in names if name not in right)
        shape = [axes_lengths[name] for name in names]
        self.weight = nnx.Param(_uniform(rngs, shape, math.sqrt(3 / fan_in)))
        if bias_shape is None:
            self.bias = None
        else:
            added = bias_shape.split()
            shape = [axes_lengths[n] if n in added else 1 for n in right if n != "..."]
            self.bias = nnx.Param(_uniform(rngs, shape, math.sqrt(1 / fan_in)))

    def __call__(self, input):
        before, after = self.sides
        input = einops.rearrange(input, f"{before} -> {self.left}", **self.lengths)
        equation = f"{self.left}, {self.axes} -> {self.right}"
        output = einops.einsum(input, self.weight[...], equation)
        if self.bias is not None:
            output = output + self.bias[...]
        return einops.rearrange(output, f"{self.right} -> {after}")


def _uniform(rngs, shape, bound):
    return rngs.params.uniform(shape, minval=-bound, maxval=bound)
