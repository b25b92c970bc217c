"""U-Net for image segmentation (Ronneberger et al., 2015)."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax


def per_axis(value, rank: int) -> tuple[int, ...]:
    """One int per spatial axis from an int, a sequence of one, or a sequence of ``rank``."""
    return (value,) * rank if hasattr(value, "__index__") else tuple(value) * (rank // len(value))


class Conv2d(nnx.Module):
    """Convolution of (N, C, H, W)."""

    def __init__(self, in_channels, out_channels, kernel_size, padding=0, bias=True, *, rngs):
        self.out_channels, self.groups = out_channels, 1
        self.stride = 1, 1
        self.dilation = 1, 1
        self.padding = (padding,) * 2
        shape = out_channels, in_channels, kernel_size, kernel_size
        self.kernel_size = shape[2:]
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        bias_init = rngs.params.uniform(shape[:1], minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init) if bias else None

    def __call__(self, input):
        bias = None if self.bias is None else self.bias[...]
        padding = [(p, p) for p in self.padding]
        batched = input if input.ndim == 4 else input[None]
        output = lax.conv_general_dilated(batched, self.weight[...], self.stride, padding)
        output = output if bias is None else output + bias.reshape(-1, 1, 1)
        return output if batched is input else output[0]


class BatchNorm2d(nnx.Module):
    """Batch normalisation of (N, C, H, W)."""

    def __init__(self, num_features, eps=1e-5, momentum=0.1, *, rngs: nnx.Rngs | None = None):
        self.eps, self.momentum = eps, momentum
        self.weight = nnx.Param(jnp.ones(num_features))
        self.bias = nnx.Param(jnp.zeros(num_features))
        self.use_running_average = False
        self.running_mean = nnx.BatchStat(jnp.zeros(num_features))
        self.running_var = nnx.BatchStat(jnp.ones(num_features))
        self.num_batches_tracked = nnx.BatchStat(jnp.array(0))

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        if self.use_running_average:
            mean, var = self.running_mean[...], self.running_var[...]
        else:
            axes = (0, *range(2, x.ndim))
            mean, var = x.mean(axes), x.var(axes)
            self.num_batches_tracked[...] += 1
            count = x.size // x.shape[1]
            new = self.momentum
            pairs = (self.running_mean, mean), (self.running_var, var * count / (count - 1))
            for stat, value in pairs if count else ():
                stat[...] = ((1 - new) * stat[...] + new * lax.stop_gradient(value)).astype(stat.dtype)
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scale = lax.rsqrt(var + self.eps) * self.weight[...]
        x = (x - mean.reshape(per_channel)) * scale.reshape(per_channel)
        return (x + self.bias[...].reshape(per_channel)).astype(input.dtype)


def max_pool2d(input, kernel_size, stride=None, padding=0):
    """Largest value of each window: (…, H, W) → (…, H_out, W_out)."""
    kernel, strides = (kernel_size,) * 2, per_axis(stride or kernel_size, 2)
    floating = jnp.issubdtype(input.dtype, jnp.floating)
    least = np.array(-np.inf if floating else jnp.iinfo(input.dtype).min, input.dtype)
    lead = (1,) * (input.ndim - 2)
    pads = [(0, 0)] * len(lead) + [(p, p) for p in (padding,) * 2]
    return lax.reduce_window(input, least, lax.max, lead + kernel, lead + strides, pads)


def _real(input):
    """The dtype ATen computes positions and weights in."""
    return np.float64 if input.dtype == np.float64 else np.float32


def _targets(input, size, scale_factor, recompute=False):
    """(axis, input size, output size, input positions per output position) of each spatial axis.

    A given scale_factor also sets the step, unless ``recompute``.
    """
    rank = input.ndim - 2
    given = size if scale_factor is None else scale_factor
    given = tuple(given) if isinstance(given, (tuple, list)) else (given,) * rank
    for axis, old, value in zip(range(2, input.ndim), input.shape[2:], given, strict=True):
        new = value if scale_factor is None else math.floor(old * value)
        own_step = scale_factor is None or recompute
        yield axis, old, new, old / new if own_step else 1 / value


def _weighted(input, axis, index, weight):
    """Σ_t input[index[:, t]] · weight[:, t] along one axis, as one product: its gradient is one too."""
    matrix = np.zeros((len(index), input.shape[axis]), weight.dtype)
    np.add.at(matrix, (np.arange(len(index))[:, None], index), weight)
    output = jnp.tensordot(input, matrix, (axis, 1), precision=lax.Precision.HIGHEST)
    return jnp.moveaxis(output, -1, axis)


def interpolate_linear(input, size=None, scale_factor=None, align_corners=False, recompute=False):
    """Linear, bilinear or trilinear resize of (N, C, …) without antialiasing."""
    dtype, real = input.dtype, _real(input)
    for axis, old, new, step in _targets(input, size, scale_factor, recompute):
        at = np.arange(new, dtype=real)
        if align_corners:
            at = at * real((old - 1) / max(new - 1, 1))
        else:
            at = np.maximum(real(step) * (at + real(0.5)) - real(0.5), 0)
        low = np.minimum(at.astype(int), old - 1)
        high = np.minimum(low + 1, old - 1)
        part = np.clip(at - low, 0, 1)
        weight = np.stack([1 - part, part], 1)
        input = _weighted(input, axis, np.stack([low, high], 1), weight)
    return input.astype(dtype)


class ConvTranspose2d(nnx.Module):
    """Transposed convolution of (N, C, H, W)."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, groups=1, *, rngs: nnx.Rngs
    ):
        self.out_channels, self.groups = out_channels, groups
        self.kernel_size = (kernel_size,) * 2
        self.stride = (stride,) * 2
        self.dilation = 1, 1
        self.padding = 0, 0
        self.output_padding = 0, 0
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        bias_init = rngs.params.uniform((out_channels,), minval=-bound, maxval=bound)
        self.bias = nnx.Param(bias_init)

    def __call__(self, input, output_size=None):
        if input.ndim == 3:
            return self(input[None], output_size)[0]
        reach = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        extra = self.output_padding
        if output_size is not None:
            smallest = zip(input.shape[2:], self.stride, self.padding, reach, strict=True)
            smallest = [(n - 1) * s - 2 * p + r + 1 for n, s, p, r in smallest]
            wanted = output_size[-2:]
            extra = [size - least for size, least in zip(wanted, smallest, strict=True)]
        # The gradient of a convolution: the input dilated by the stride, the kernel flipped.
        kernel = jnp.flip(self.weight[...], range(2, 4))
        kernel = kernel.reshape(self.groups, -1, *kernel.shape[1:]).swapaxes(1, 2)
        output = lax.conv_general_dilated(
            input,
            kernel.reshape(self.out_channels, -1, *self.kernel_size),
            (1, 1),
            [(r - p, r - p + e) for r, p, e in zip(reach, self.padding, extra, strict=True)],
            lhs_dilation=self.stride,
            rhs_dilation=self.dilation,
            feature_group_count=self.groups,
        )
        return output + self.bias[...].reshape(-1, 1, 1)


def pad_axes(input, pad):
    """Pad or crop the last axes by ``pad`` = (before, after) of the last axis, of the one before, …"""
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2)
    pairs += zip(pad[-2::-2], pad[::-2], strict=True)
    fill = jnp.asarray(0, input.dtype)
    return lax.pad(input, fill, [(before, after, 0) for before, after in pairs])


class DoubleConv(nnx.Module):
    """(convolution => [BN] => ReLU) * 2"""

    def __init__(self, in_channels, out_channels, mid_channels=None, *, rngs: nnx.Rngs):
        if not mid_channels:
            mid_channels = out_channels
        self.double_conv = nnx.Sequential(
            Conv2d(in_channels, mid_channels, 3, padding=1, bias=False, rngs=rngs),
            BatchNorm2d(mid_channels, rngs=rngs),
            jax.nn.relu,
            Conv2d(mid_channels, out_channels, 3, padding=1, bias=False, rngs=rngs),
            BatchNorm2d(out_channels, rngs=rngs),
            jax.nn.relu,
        )

    def __call__(self, x):
        return self.double_conv(x)


class Down(nnx.Module):
    """Downscaling with maxpool then double conv"""

    def __init__(self, in_channels, out_channels, *, rngs: nnx.Rngs):
        self.maxpool_conv = nnx.Sequential(
            functools.partial(max_pool2d, kernel_size=2),
            DoubleConv(in_channels, out_channels, rngs=rngs),
        )

    def __call__(self, x):
        return self.maxpool_conv(x)


class Up(nnx.Module):
    """Upscaling then double conv"""

    def __init__(self, in_channels, out_channels, bilinear=True, *, rngs: nnx.Rngs):

        # if bilinear, use the normal convolutions to reduce the number of channels
        if bilinear:
            self.up = functools.partial(interpolate_linear, scale_factor=2, align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2, rngs=rngs)
        else:
            self.up = ConvTranspose2d(in_channels, in_channels // 2, 2, stride=2, rngs=rngs)
            self.conv = DoubleConv(in_channels, out_channels, rngs=rngs)

    def __call__(self, x1, x2):
        x1 = self.up(x1)
        # input is CHW
        diffY = x2.shape[2] - x1.shape[2]
        diffX = x2.shape[3] - x1.shape[3]

        x1 = pad_axes(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
        x = jnp.concatenate([x2, x1], axis=1)
        return self.conv(x)


class OutConv(nnx.Module):
    def __init__(self, in_channels, out_channels, *, rngs: nnx.Rngs):
        self.conv = Conv2d(in_channels, out_channels, 1, rngs=rngs)

    def __call__(self, x):
        return self.conv(x)


class UNet(nnx.Module):
    """The four-level network; images of any size go in, logits of the same size come out."""

    def __init__(self, n_channels=3, n_classes=2, base=8, bilinear=False, *, rngs: nnx.Rngs):
        self.n_channels = n_channels
        self.n_classes = n_classes
        self.bilinear = bilinear

        self.inc = DoubleConv(n_channels, base, rngs=rngs)
        self.down1 = Down(base, base * 2, rngs=rngs)
        self.down2 = Down(base * 2, base * 4, rngs=rngs)
        factor = 2 if bilinear else 1
        self.down3 = Down(base * 4, base * 8 // factor, rngs=rngs)
        self.up1 = Up(base * 8, base * 4 // factor, bilinear, rngs=rngs)
        self.up2 = Up(base * 4, base * 2 // factor, bilinear, rngs=rngs)
        self.up3 = Up(base * 2, base, bilinear, rngs=rngs)
        self.outc = OutConv(base, n_classes, rngs=rngs)

    def __call__(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(x4, x3)
        x = self.up2(x, x2)
        x = self.up3(x, x1)
        logits = self.outc(x)
        return logits


def dice_loss(logits: jax.Array, target: jax.Array, epsilon: float = 1e-6) -> jax.Array:
    """One minus the mean Dice coefficient over the classes; target holds class indices (B, H, W)."""
    prob = jax.nn.softmax(logits, axis=1).astype(jnp.float32)
    one_hot = jax.nn.one_hot(target, logits.shape[1], dtype=jnp.int32).transpose(0, 3, 1, 2).astype(
        jnp.float32
    )
    inter = 2 * (prob * one_hot).sum(axis=(-1, -2))
    sets_sum = prob.sum(axis=(-1, -2)) + one_hot.sum(axis=(-1, -2))
    sets_sum = jnp.where(sets_sum == 0, inter, sets_sum)
    dice = (inter + epsilon) / (sets_sum + epsilon)
    return 1 - dice.mean()
