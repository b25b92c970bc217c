"""Layers that are plain functions elsewhere, as classes with torch's arguments and attributes to derive from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from rules.compat.activations import leaky_relu, softplus
from rules.compat.interpolate import interpolate
from rules.compat.layer_functions import flatten, log_softmax, softmax
from rules.compat.loss_layers import l1_loss, mse_loss
from rules.compat.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    kl_div,
    nll_loss,
    smooth_l1_loss,
)
from rules.compat.padding import pad_axes
from rules.compat.pooling import adaptive_avg_pool2d
from rules.compat.tuples import ntuple
from rules.compat.vision import pixel_shuffle


class IdentityAsTorch(nnx.Module):
    """The input itself, whatever the arguments."""

    def __init__(self, *args, rngs=None, **kwargs):
        pass

    def __call__(self, input):
        return input


class GELUAsTorch(nnx.Module):
    """x Φ(x), by erf or by tanh."""

    def __init__(self, approximate="none", *, rngs=None):
        self.approximate = approximate

    def __call__(self, input):
        return jax.nn.gelu(input, approximate=self.approximate == "tanh")


class SigmoidAsTorch(nnx.Module):
    """1 / (1 + exp(-x))."""

    def __init__(self, *, rngs=None):
        pass

    def __call__(self, input):
        return jax.nn.sigmoid(input)


class TanhAsTorch(nnx.Module):
    """The hyperbolic tangent."""

    def __init__(self, *, rngs=None):
        pass

    def __call__(self, input):
        return jnp.tanh(input)


class ReLUAsTorch(nnx.Module):
    """max(x, 0)."""

    def __init__(self, inplace=False, *, rngs=None):
        self.inplace = inplace

    def __call__(self, input):
        return jax.nn.relu(input)


class SiLUAsTorch(nnx.Module):
    """x / (1 + exp(-x))."""

    def __init__(self, inplace=False, *, rngs=None):
        self.inplace = inplace

    def __call__(self, input):
        return jax.nn.silu(input)


class LeakyReLUAsTorch(nnx.Module):
    """x where x > 0, else ``negative_slope`` · x."""

    def __init__(self, negative_slope=0.01, inplace=False, *, rngs=None):
        self.negative_slope, self.inplace = negative_slope, inplace

    def __call__(self, input):
        return leaky_relu(input, self.negative_slope)


class ELUAsTorch(nnx.Module):
    """x where x > 0, else ``alpha`` · (exp(x) - 1)."""

    def __init__(self, alpha=1.0, inplace=False, *, rngs=None):
        self.alpha, self.inplace = alpha, inplace

    def __call__(self, input):
        return jax.nn.elu(input, self.alpha)


class SoftplusAsTorch(nnx.Module):
    """log(1 + exp(``beta`` · x)) / ``beta``, linear above the threshold."""

    def __init__(self, beta=1.0, threshold=20.0, *, rngs=None):
        self.beta, self.threshold = beta, threshold

    def __call__(self, input):
        return softplus(input, self.beta, self.threshold)


class PixelShuffleAsTorch(nnx.Module):
    """(…, C · r², H, W) to (…, C, H · r, W · r)."""

    def __init__(self, upscale_factor, *, rngs=None):
        self.upscale_factor = upscale_factor

    def __call__(self, input):
        return pixel_shuffle(input, self.upscale_factor)


class SoftmaxAsTorch(nnx.Module):
    """exp(x) that sums to one along ``dim``."""

    def __init__(self, dim=None, *, rngs=None):
        self.dim = dim

    def __call__(self, input):
        return softmax(input, self.dim)


class LogSoftmaxAsTorch(nnx.Module):
    """The logarithm of softmax along ``dim``."""

    def __init__(self, dim=None, *, rngs=None):
        self.dim = dim

    def __call__(self, input):
        return log_softmax(input, self.dim)


class FlattenAsTorch(nnx.Module):
    """Axes ``start_dim`` … ``end_dim`` made one."""

    def __init__(self, start_dim=1, end_dim=-1, *, rngs=None):
        self.start_dim, self.end_dim = start_dim, end_dim

    def __call__(self, input):
        return flatten(input, self.start_dim, self.end_dim)


class UpsampleAsTorch(nnx.Module):
    """``interpolate`` to a size or by a factor."""

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode="nearest",
        align_corners=None,
        recompute_scale_factor=None,
        *,
        rngs=None,
    ):
        self.size, self.mode = size, mode
        one = scale_factor is None or not isinstance(scale_factor, (tuple, list))
        factors = () if one else tuple(float(factor) for factor in scale_factor)
        self.scale_factor = (float(scale_factor) if scale_factor else None) if one else factors
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def __call__(self, input):
        options = {"mode": self.mode, "align_corners": self.align_corners}
        options["recompute_scale_factor"] = self.recompute_scale_factor
        return interpolate(input, size=self.size, scale_factor=self.scale_factor, **options)


class AdaptiveAvgPool2dAsTorch(nnx.Module):
    """Means over windows that give ``output_size``."""

    def __init__(self, output_size, *, rngs=None):
        self.output_size = output_size

    def __call__(self, input):
        return adaptive_avg_pool2d(input, self.output_size)


# --- padding ------------------------------------------------------------------------------------------------------


class ConstantPad1dAsTorch(nnx.Module):
    """A constant before and after the last axis."""

    def __init__(self, padding, value, *, rngs=None):
        self.padding, self.value = ntuple(padding, 2), value

    def __call__(self, input):
        return pad_axes(input, self.padding, value=self.value)


class ConstantPad2dAsTorch(nnx.Module):
    """A constant before and after each of the last two axes."""

    def __init__(self, padding, value, *, rngs=None):
        self.padding, self.value = ntuple(padding, 4), value

    def __call__(self, input):
        return pad_axes(input, self.padding, value=self.value)


class ZeroPad2dAsTorch(ConstantPad2dAsTorch):
    """Zeros before and after each of the last two axes."""

    def __init__(self, padding, *, rngs=None):
        super().__init__(padding, 0.0)


class ReflectionPad2dAsTorch(nnx.Module):
    """The input mirrored before and after each of the last two axes."""

    def __init__(self, padding, *, rngs=None):
        self.padding = ntuple(padding, 4)

    def __call__(self, input):
        return pad_axes(input, self.padding, mode="reflect")


# --- losses -------------------------------------------------------------------------------------------------------


class LossAsTorch(nnx.Module):
    """What torch's losses share: ``reduction``, also in its old spelling."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        if size_average is not None or reduce is not None:
            reduction = "sum" if size_average is False else "mean"
            reduction = "none" if reduce is False else reduction
        self.reduction = reduction


class WeightedLossAsTorch(LossAsTorch):
    """A loss with ``weight``, a buffer where it is given."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean", *, rngs=None):
        super().__init__(size_average, reduce, reduction)
        self.weight = None if weight is None else nnx.data(nnx.Variable(weight))

    def weights(self):
        """The values of ``weight``."""
        return None if self.weight is None else self.weight[...]


class MSELossAsTorch(LossAsTorch):
    """(input - target)²."""

    def __call__(self, input, target):
        return mse_loss(input, target, self.reduction)


class L1LossAsTorch(LossAsTorch):
    """|input - target|."""

    def __call__(self, input, target):
        return l1_loss(input, target, self.reduction)


class SmoothL1LossAsTorch(LossAsTorch):
    """Quadratic below ``beta``, linear above."""

    def __init__(self, size_average=None, reduce=None, reduction="mean", beta=1.0, *, rngs=None):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def __call__(self, input, target):
        return smooth_l1_loss(input, target, self.reduction, self.beta)


class KLDivLossAsTorch(LossAsTorch):
    """target · (log target - input)."""

    def __init__(
        self, size_average=None, reduce=None, reduction="mean", log_target=False, *, rngs=None
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def __call__(self, input, target):
        return kl_div(input, target, self.reduction, self.log_target)


class NLLLossAsTorch(WeightedLossAsTorch):
    """Negative log-likelihood of log-probabilities."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        *,
        rngs=None,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def __call__(self, input, target):
        return nll_loss(input, target, self.weights(), self.ignore_index, self.reduction)


class CrossEntropyLossAsTorch(WeightedLossAsTorch):
    """Cross entropy of logits."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        ignore_index=-100,
        reduce=None,
        reduction="mean",
        label_smoothing=0.0,
        *,
        rngs=None,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def __call__(self, input, target):
        options = {"ignore_index": self.ignore_index, "label_smoothing": self.label_smoothing}
        return cross_entropy(
            input, target, weight=self.weights(), reduction=self.reduction, **options
        )


class BCELossAsTorch(WeightedLossAsTorch):
    """Binary cross entropy of probabilities."""

    def __call__(self, input, target):
        return binary_cross_entropy(input, target, self.weights(), self.reduction)


class BCEWithLogitsLossAsTorch(WeightedLossAsTorch):
    """Binary cross entropy of logits."""

    def __init__(
        self,
        weight=None,
        size_average=None,
        reduce=None,
        reduction="mean",
        pos_weight=None,
        *,
        rngs=None,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.pos_weight = None if pos_weight is None else nnx.data(nnx.Variable(pos_weight))

    def __call__(self, input, target):
        positive = None if self.pos_weight is None else self.pos_weight[...]
        return binary_cross_entropy_with_logits(
            input, target, self.weights(), self.reduction, positive
        )
