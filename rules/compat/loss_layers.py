"""Losses that hold arrays, and the two that are one line as functions."""

from __future__ import annotations

from flax import nnx

from rules.compat.losses import cross_entropy, reduce_loss
from rules.compat.pointwise import absolute


def mse_loss(input, target, reduction="mean"):
    """(input - target)²."""
    return reduce_loss((input - target) ** 2, reduction)


def l1_loss(input, target, reduction="mean"):
    """|input - target| whose slope at 0 is 0."""
    return reduce_loss(absolute(input - target), reduction)


class WeightedLoss(nnx.Module):
    """A loss function with ``weight``, ``pos_weight`` or both kept as buffers."""

    def __init__(self, function, weight=None, pos_weight=None, *, rngs: nnx.Rngs | None = None):
        self.function = function
        self.weight = None if weight is None else nnx.data(nnx.Variable(weight))
        self.pos_weight = None if pos_weight is None else nnx.data(nnx.Variable(pos_weight))

    def __call__(self, input, target):
        arrays = {"weight": self.weight, "pos_weight": self.pos_weight}
        arrays = {name: array[...] for name, array in arrays.items() if array is not None}
        return self.function(input, target, **arrays)


class LinearCrossEntropyLoss(nnx.Module):
    """Cross entropy of a linear map: (N, in_features), targets (N, *out_features)."""

    def __init__(
        self,
        linear,
        num_classes,
        out_features=(),
        weight=None,
        *,
        rngs: nnx.Rngs | None = None,
        **options,
    ):
        self.linear, self.shape = linear, (num_classes, *out_features)
        self.weight = None if weight is None else nnx.data(nnx.Variable(weight))
        self.options = tuple(options.items())

    def __call__(self, input, target):
        logits = self.linear(input)
        logits = logits.reshape(*logits.shape[:-1], *self.shape)
        weight = None if self.weight is None else self.weight[...]
        return cross_entropy(logits, target, weight=weight, **dict(self.options))


class Loss(nnx.Module):
    """The base of torch's losses: it keeps ``reduction``, also in its old spelling."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        if size_average is not None or reduce is not None:
            reduction = "sum" if size_average is False else "mean"
            reduction = "none" if reduce is False else reduction
        self.reduction = reduction
