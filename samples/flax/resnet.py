"""ResNet for images (He et al., 2015), with the 18- and 34-layer configurations."""

import functools
import math
from typing import List, Optional, Type

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax


class Conv2d(nnx.Module):
    """Convolution of (N, C, H, W), here with ``bias=False``."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, *, rngs):
        self.stride = (stride,) * 2
        self.padding = (padding,) * 2
        shape = out_channels, in_channels, kernel_size, kernel_size
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        self.bias = None

    def __call__(self, input):
        padding = [(p, p) for p in self.padding]
        batched = input if input.ndim == 4 else input[None]
        output = lax.conv_general_dilated(batched, self.weight[...], self.stride, padding)
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
    kernel, strides = (kernel_size,) * 2, (stride or kernel_size,) * 2
    floating = jnp.issubdtype(input.dtype, jnp.floating)
    least = np.array(-np.inf if floating else jnp.iinfo(input.dtype).min, input.dtype)
    lead = (1,) * (input.ndim - 2)
    pads = [(0, 0)] * len(lead) + [(p, p) for p in (padding,) * 2]
    return lax.reduce_window(input, least, lax.max, lead + kernel, lead + strides, pads)


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        super().__init__(in_features, out_features, kernel_init=init, bias_init=init, rngs=rngs)


def conv3x3(in_planes: int, out_planes: int, stride: int = 1, *, rngs: nnx.Rngs) -> Conv2d:
    """3x3 convolution with padding"""
    return Conv2d(in_planes, out_planes, 3, stride=stride, padding=1, rngs=rngs)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1, *, rngs: nnx.Rngs) -> Conv2d:
    """1x1 convolution"""
    return Conv2d(in_planes, out_planes, 1, stride=stride, rngs=rngs)


class BasicBlock(nnx.Module):
    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        downsample: Optional[nnx.Module] = None,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        # Both self.conv1 and self.downsample layers downsample the input when stride != 1
        self.conv1 = conv3x3(inplanes, planes, stride, rngs=rngs)
        self.bn1 = BatchNorm2d(planes, rngs=rngs)
        self.relu = jax.nn.relu
        self.conv2 = conv3x3(planes, planes, rngs=rngs)
        self.bn2 = BatchNorm2d(planes, rngs=rngs)
        self.downsample = downsample
        self.stride = stride

    def __call__(self, x: jax.Array) -> jax.Array:
        identity = x

        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)

        out = self.conv2(out)
        out = self.bn2(out)

        if self.downsample is not None:
            identity = self.downsample(x)

        out += identity
        out = self.relu(out)

        return out


class ResNet(nnx.Module):
    def __init__(
        self,
        block: Type[BasicBlock],
        layers: List[int],
        num_classes: int = 1000,
        width: int = 64,
        zero_init_residual: bool = False,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        self.inplanes = width
        self.conv1 = Conv2d(3, width, 7, stride=2, padding=3, rngs=rngs)
        self.bn1 = BatchNorm2d(width, rngs=rngs)
        self.relu = jax.nn.relu
        self.maxpool = functools.partial(max_pool2d, kernel_size=3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, width, layers[0], rngs=rngs)
        self.layer2 = self._make_layer(block, width * 2, layers[1], stride=2, rngs=rngs)
        self.layer3 = self._make_layer(block, width * 4, layers[2], stride=2, rngs=rngs)
        self.layer4 = self._make_layer(block, width * 8, layers[3], stride=2, rngs=rngs)
        self.avgpool = functools.partial(jnp.mean, axis=(-2, -1), keepdims=True)
        self.fc = Linear(width * 8 * block.expansion, num_classes, rngs=rngs)

        for _, m in nnx.iter_modules(self):
            if isinstance(m, Conv2d):
                m.weight[...] = jax.nn.initializers.variance_scaling(
                    2.0, "fan_out", "normal", in_axis=1, out_axis=0
                )(rngs.params(), m.weight.shape, m.weight.dtype)
            elif isinstance(m, BatchNorm2d):
                m.weight[...] = jnp.full_like(m.weight[...], 1)
                m.bias[...] = jnp.full_like(m.bias[...], 0)

        # Zero-initialize the last BN in each residual branch, so that the residual branch
        # starts with zeros, and each residual block behaves like an identity.
        if zero_init_residual:
            for _, m in nnx.iter_modules(self):
                if isinstance(m, BasicBlock):
                    m.bn2.weight[...] = jnp.full_like(m.bn2.weight[...], 0)

    def _make_layer(
        self, block: Type[BasicBlock], planes: int, blocks: int, stride: int = 1, *, rngs: nnx.Rngs
    ) -> nnx.Sequential:
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nnx.Sequential(
                conv1x1(self.inplanes, planes * block.expansion, stride, rngs=rngs),
                BatchNorm2d(planes * block.expansion, rngs=rngs),
            )

        layers = []
        layers.append(block(self.inplanes, planes, stride, downsample, rngs=rngs))
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.inplanes, planes, rngs=rngs))

        return nnx.Sequential(*layers)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)

        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)

        x = self.avgpool(x)
        x = x.reshape(x.shape[0], -1)
        x = self.fc(x)

        return x


def resnet18(*, rngs: nnx.Rngs, **kwargs) -> ResNet:
    """The 18-layer network: two basic blocks a stage."""
    return ResNet(BasicBlock, [2, 2, 2, 2], rngs=rngs, **kwargs)


def resnet34(*, rngs: nnx.Rngs, **kwargs) -> ResNet:
    """The 34-layer network."""
    return ResNet(BasicBlock, [3, 4, 6, 3], rngs=rngs, **kwargs)
