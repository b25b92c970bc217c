"""More layers that are plain functions elsewhere, as classes with torch's arguments and attributes to derive from."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from rules.compat.activations import elu, hardshrink, hardtanh, softshrink
from rules.compat.as_torch import UpsampleAsTorch
from rules.compat.layer_functions import softmin, tanhshrink
from rules.compat.pooling import lp_pool
from rules.compat.vision import channel_shuffle, fold, pixel_unshuffle, unfold


class GLUAsTorch(nnx.Module):
    """The first half along ``dim`` times the sigmoid of the second."""

    def __init__(self, dim=-1, *, rngs=None):
        self.dim = dim

    def __call__(self, input):
        return jax.nn.glu(input, axis=self.dim)


class HardtanhAsTorch(nnx.Module):
    """clip(x, min_val, max_val), with slope 0 at the ends."""

    def __init__(
        self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None, *, rngs=None
    ):
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace

    def __call__(self, input):
        return hardtanh(input, self.min_val, self.max_val)


class ReLU6AsTorch(HardtanhAsTorch):
    """clip(x, 0, 6)."""

    def __init__(self, inplace=False, *, rngs=None):
        super().__init__(0.0, 6.0, inplace)


class _Elementwise(nnx.Module):
    """A function of each element that may work in place in torch."""

    def __init__(self, inplace=False, *, rngs=None):
        self.inplace = inplace


class SELUAsTorch(_Elementwise):
    """ELU with a scale and alpha that keep mean and variance."""

    def __call__(self, input):
        return jax.nn.selu(input)


class MishAsTorch(_Elementwise):
    """x · tanh(softplus(x))."""

    def __call__(self, input):
        return jax.nn.mish(input)


class HardsigmoidAsTorch(_Elementwise):
    """clip(x / 6 + 1 / 2, 0, 1)."""

    def __call__(self, input):
        return jax.nn.hard_sigmoid(input)


class HardswishAsTorch(_Elementwise):
    """x · hardsigmoid(x)."""

    def __call__(self, input):
        return jax.nn.hard_silu(input)


class CELUAsTorch(nnx.Module):
    """max(0, x) + min(0, α (exp(x / α) - 1))."""

    def __init__(self, alpha=1.0, inplace=False, *, rngs=None):
        self.alpha, self.inplace = alpha, inplace

    def __call__(self, input):
        return elu(input, alpha=self.alpha, input_scale=1 / self.alpha)


class ThresholdAsTorch(nnx.Module):
    """x where x > threshold, else value."""

    def __init__(self, threshold, value, inplace=False, *, rngs=None):
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def __call__(self, input):
        return jnp.where(input <= self.threshold, self.value, input)


class HardshrinkAsTorch(nnx.Module):
    """x where |x| > lambd, else 0."""

    def __init__(self, lambd=0.5, *, rngs=None):
        self.lambd = lambd

    def __call__(self, input):
        return hardshrink(input, self.lambd)


class SoftshrinkAsTorch(nnx.Module):
    """x moved towards 0 by lambd, 0 within it."""

    def __init__(self, lambd=0.5, *, rngs=None):
        self.lambd = lambd

    def __call__(self, input):
        return softshrink(input, self.lambd)


class TanhshrinkAsTorch(nnx.Module):
    """x - tanh(x)."""

    def __init__(self, *, rngs=None):
        pass

    def __call__(self, input):
        return tanhshrink(input)


class SoftsignAsTorch(nnx.Module):
    """x / (1 + |x|)."""

    def __init__(self, *, rngs=None):
        pass

    def __call__(self, input):
        return jax.nn.soft_sign(input)


class LogSigmoidAsTorch(nnx.Module):
    """The logarithm of 1 / (1 + exp(-x))."""

    def __init__(self, *, rngs=None):
        pass

    def __call__(self, input):
        return jax.nn.log_sigmoid(input)


class Softmax2dAsTorch(nnx.Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def __init__(self, *, rngs=None):
        pass

    def __call__(self, input):
        return jax.nn.softmax(input, axis=-3)


class SoftminAsTorch(nnx.Module):
    """Softmax of -x along ``dim``."""

    def __init__(self, dim=None, *, rngs=None):
        self.dim = dim

    def __call__(self, input):
        return softmin(input, self.dim)


class UnfoldAsTorch(nnx.Module):
    """Sliding blocks as columns."""

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1, *, rngs=None):
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def __call__(self, input):
        return unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class FoldAsTorch(nnx.Module):
    """Blocks summed at their places."""

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1, *, rngs=None):
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def __call__(self, input):
        sizes = self.output_size, self.kernel_size
        return fold(input, *sizes, self.dilation, self.padding, self.stride)


class ChannelShuffleAsTorch(nnx.Module):
    """Channel groups interleaved."""

    def __init__(self, groups, *, rngs=None):
        self.groups = groups

    def __call__(self, input):
        return channel_shuffle(input, self.groups)


class PixelUnshuffleAsTorch(nnx.Module):
    """(…, C, H · r, W · r) to (…, C · r², H, W)."""

    def __init__(self, downscale_factor, *, rngs=None):
        self.downscale_factor = downscale_factor

    def __call__(self, input):
        return pixel_unshuffle(input, self.downscale_factor)


class UpsamplingNearest2dAsTorch(UpsampleAsTorch):
    """``Upsample`` by nearest neighbour."""

    def __init__(self, size=None, scale_factor=None, *, rngs=None):
        super().__init__(size, scale_factor)


class UpsamplingBilinear2dAsTorch(UpsampleAsTorch):
    """``Upsample`` bilinearly with aligned corners."""

    def __init__(self, size=None, scale_factor=None, *, rngs=None):
        super().__init__(size, scale_factor, "bilinear", True)


class LPPool2dAsTorch(nnx.Module):
    """(Σ x^p)^(1/p) of each window."""

    axes = 2

    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False, *, rngs=None):
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def __call__(self, input):
        sizes = self.kernel_size, self.stride
        return lp_pool(self.axes, input, self.norm_type, *sizes, ceil_mode=self.ceil_mode)


class LPPool1dAsTorch(LPPool2dAsTorch):
    """The same over one axis."""

    axes = 1
