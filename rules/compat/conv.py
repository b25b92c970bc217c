"""Convolution layers with torch's layouts: input (N, C, *spatial), weight (out, in / groups, *kernel)."""

from __future__ import annotations

import math

import jax.numpy as jnp
from flax import nnx
from jax import lax

from rules.compat.pooling import per_axis


class ConvNd(nnx.Module):
    """Convolution of (N, C, *spatial), N optional; weight (out, in / groups, *kernel_size)."""

    spatial: int

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        dtype=None,
        *,
        rngs,
    ):
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.stride = per_axis(stride, self.spatial)
        self.dilation = per_axis(dilation, self.spatial)
        self.padding = padding if isinstance(padding, str) else per_axis(padding, self.spatial)
        shape = (out_channels, in_channels // groups, *per_axis(kernel_size, self.spatial))
        self.kernel_size = shape[2:]
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(
            rngs.params.uniform(shape, dtype=dtype, minval=-bound, maxval=bound)
        )
        bias_init = rngs.params.uniform(shape[:1], dtype=dtype, minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init) if bias else None

    def __call__(self, input):
        bias = None if self.bias is None else self.bias[...]
        return self._conv_forward(input, self.weight[...], bias)

    def _conv_forward(self, input, weight, bias, padding=None):
        padding = self.padding if padding is None else padding
        padding = padding.upper() if isinstance(padding, str) else [(p, p) for p in padding]
        batched = input if input.ndim == self.spatial + 2 else input[None]
        output = lax.conv_general_dilated(
            batched,
            weight,
            self.stride,
            padding,
            rhs_dilation=self.dilation,
            feature_group_count=self.groups,
        )
        output = output if bias is None else output + bias.reshape(-1, *(1,) * self.spatial)
        return output if batched is input else output[0]


class Conv1d(ConvNd):
    """Convolution of (N, C, L)."""

    spatial = 1


class Conv2d(ConvNd):
    """Convolution of (N, C, H, W)."""

    spatial = 2


class Conv3d(ConvNd):
    """Convolution of (N, C, D, H, W)."""

    spatial = 3


class PaddedConv(nnx.Module):
    """Mixin: a convolution with every ``padding_mode`` of torch: zeros, reflect, replicate, circular."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        dtype=None,
        *,
        rngs: nnx.Rngs,
    ):
        sizes = (in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        super().__init__(*sizes, bias, dtype, rngs=rngs)
        self.padding_mode = padding_mode
        pairs = reversed(self._margins(self.padding))
        self._reversed_padding_repeated_twice = tuple(one for pair in pairs for one in pair)

    def _conv_forward(self, input, weight, bias, padding=None):
        padding = self.padding if padding is None else padding
        if self.padding_mode == "zeros":
            return super()._conv_forward(input, weight, bias, padding)
        mode = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[self.padding_mode]
        margins = [(0, 0)] * (input.ndim - self.spatial) + self._margins(padding)
        return super()._conv_forward(jnp.pad(input, margins, mode), weight, bias, "valid")

    def _margins(self, padding):
        """Before and after each axis."""
        if padding == "same":
            totals = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [(total // 2, total - total // 2) for total in totals]
        return [(p, p) for p in ((0,) * self.spatial if padding == "valid" else padding)]


class PaddedConv1d(PaddedConv, Conv1d):
    """``Conv1d`` with a ``padding_mode``."""


class PaddedConv2d(PaddedConv, Conv2d):
    """``Conv2d`` with a ``padding_mode``."""


class PaddedConv3d(PaddedConv, Conv3d):
    """``Conv3d`` with a ``padding_mode``."""


class ConvTransposeNd(nnx.Module):
    """Transposed convolution of (N, C, *spatial), N optional; weight (in, out / groups, *kernel_size)."""

    spatial: int

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        dtype=None,
        *,
        rngs: nnx.Rngs,
    ):
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = per_axis(kernel_size, self.spatial)
        self.stride = per_axis(stride, self.spatial)
        self.dilation = per_axis(dilation, self.spatial)
        self.padding = per_axis(padding, self.spatial)
        self.output_padding = per_axis(output_padding, self.spatial)
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(
            rngs.params.uniform(shape, dtype=dtype, minval=-bound, maxval=bound)
        )
        bias_init = rngs.params.uniform((out_channels,), dtype=dtype, minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init) if bias else None

    def __call__(self, input, output_size=None):
        if input.ndim == self.spatial + 1:
            return self(input[None], output_size)[0]
        reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        extra = self.output_padding
        if output_size is not None:
            smallest = zip(input.shape[2:], self.stride, self.padding, reach, strict=True)
            smallest = [(n - 1) * s - 2 * p + r + 1 for n, s, p, r in smallest]
            wanted = output_size[-self.spatial :]
            extra = [size - least for size, least in zip(wanted, smallest, strict=True)]
        # The gradient of a convolution: the input dilated by the stride, the kernel flipped.
        kernel = jnp.flip(self.weight[...], range(2, self.spatial + 2))
        kernel = kernel.reshape(self.groups, -1, *kernel.shape[1:]).swapaxes(1, 2)
        output = lax.conv_general_dilated(
            input,
            kernel.reshape(self.out_channels, -1, *self.kernel_size),
            (1,) * self.spatial,
            [(r - p, r - p + e) for r, p, e in zip(reach, self.padding, extra, strict=True)],
            lhs_dilation=self.stride,
            rhs_dilation=self.dilation,
            feature_group_count=self.groups,
        )
        if self.bias is None:
            return output
        return output + self.bias[...].reshape(-1, *(1,) * self.spatial)


class ConvTranspose1d(ConvTransposeNd):
    """Transposed convolution of (N, C, L)."""

    spatial = 1


class ConvTranspose2d(ConvTransposeNd):
    """Transposed convolution of (N, C, H, W)."""

    spatial = 2


class ConvTranspose3d(ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W)."""

    spatial = 3


class Lazy(nnx.Module):
    """Mixin: parameters are made on the first call, for the channels of its input."""

    def __init__(self, *args, rngs: nnx.Rngs, **options):
        self.weight, self.bias = nnx.data(None), nnx.data(None)
        self.args, self.options, self.rngs = args, tuple(options.items()), rngs

    def __call__(self, input, *args):
        if self.weight is None:
            channels = input.shape[-self.spatial - 1]
            super().__init__(channels, *self.args, rngs=self.rngs, **dict(self.options))
        return super().__call__(input, *args)


class LazyConv1d(Lazy, Conv1d):
    """``Conv1d`` that learns ``in_channels`` on its first call."""


class LazyConv2d(Lazy, Conv2d):
    """``Conv2d`` that learns ``in_channels`` on its first call."""


class LazyConv3d(Lazy, Conv3d):
    """``Conv3d`` that learns ``in_channels`` on its first call."""


class LazyConvTranspose1d(Lazy, ConvTranspose1d):
    """``ConvTranspose1d`` that learns ``in_channels`` on its first call."""


class LazyConvTranspose2d(Lazy, ConvTranspose2d):
    """``ConvTranspose2d`` that learns ``in_channels`` on its first call."""


class LazyConvTranspose3d(Lazy, ConvTranspose3d):
    """``ConvTranspose3d`` that learns ``in_channels`` on its first call."""
