"""MobileNetV2: inverted residuals and linear bottlenecks (Sandler et al., 2018)."""

import math
from typing import List, Optional

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


def per_axis(value, rank: int) -> tuple[int, ...]:
    """One int per spatial axis from an int, a sequence of one, or a sequence of ``rank``."""
    return (value,) * rank if hasattr(value, "__index__") else tuple(value) * (rank // len(value))


class Conv2d(nnx.Module):
    """Convolution of (N, C, H, W), here with ``bias=False``."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, groups=1, *, rngs
    ):
        self.groups = groups
        self.stride = per_axis(stride, 2)
        self.padding = padding if isinstance(padding, str) else per_axis(padding, 2)
        shape = (out_channels, in_channels // groups, *per_axis(kernel_size, 2))
        bound = max(math.prod(shape[1:]), 1) ** -0.5
        self.weight = nnx.Param(rngs.params.uniform(shape, minval=-bound, maxval=bound))
        self.bias = None

    def __call__(self, input):
        padding = self.padding
        padding = padding.upper() if isinstance(padding, str) else [(p, p) for p in padding]
        batched = input if input.ndim == 4 else input[None]
        output = lax.conv_general_dilated(
            batched, self.weight[...], self.stride, padding, feature_group_count=self.groups
        )
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


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        super().__init__(in_features, out_features, kernel_init=init, bias_init=init, rngs=rngs)


def _make_divisible(v: float, divisor: int, min_value: Optional[int] = None) -> int:
    """
    This function is taken from the original tf repo.
    It ensures that all layers have a channel number that is divisible by 8
    """
    if min_value is None:
        min_value = divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    # Make sure that round down does not go down by more than 10%.
    if new_v < 0.9 * v:
        new_v += divisor
    return new_v


class ConvBNReLU(nnx.Sequential):
    def __init__(
        self,
        in_planes: int,
        out_planes: int,
        kernel_size: int = 3,
        stride: int = 1,
        groups: int = 1,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        padding = (kernel_size - 1) // 2
        super().__init__(
            Conv2d(
                in_planes,
                out_planes,
                kernel_size,
                stride=stride,
                padding=padding,
                groups=groups,
                rngs=rngs,
            ),
            BatchNorm2d(out_planes, rngs=rngs),
            jax.nn.relu6,
        )


class InvertedResidual(nnx.Module):
    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: int, *, rngs: nnx.Rngs
    ) -> None:
        self.stride = stride
        assert stride in [1, 2]

        hidden_dim = int(round(inp * expand_ratio))
        self.use_res_connect = self.stride == 1 and inp == oup

        layers: List[nnx.Module] = []
        if expand_ratio != 1:
            # pw
            layers.append(ConvBNReLU(inp, hidden_dim, kernel_size=1, rngs=rngs))
        layers.extend(
            [
                # dw
                ConvBNReLU(hidden_dim, hidden_dim, stride=stride, groups=hidden_dim, rngs=rngs),
                # pw-linear
                Conv2d(hidden_dim, oup, 1, rngs=rngs),
                BatchNorm2d(oup, rngs=rngs),
            ]
        )
        self.conv = nnx.Sequential(*layers)

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.use_res_connect:
            return x + self.conv(x)
        return self.conv(x)


class MobileNetV2(nnx.Module):
    """
    MobileNet V2 main class

    Args:
        num_classes (int): Number of classes
        width_mult (float): Width multiplier - adjusts number of channels in each layer by this amount
        inverted_residual_setting: Network structure, rows of (expand, channels, blocks, stride)
        round_nearest (int): Round the number of channels in each layer to be a multiple of this number
        dropout (float): The dropout probability before the classifier
    """

    def __init__(
        self,
        num_classes: int = 1000,
        width_mult: float = 1.0,
        inverted_residual_setting: Optional[List[List[int]]] = None,
        round_nearest: int = 8,
        dropout: float = 0.2,
        *,
        rngs: nnx.Rngs,
    ) -> None:
        input_channel = 32
        last_channel = 1280

        if inverted_residual_setting is None:
            inverted_residual_setting = [
                # t, c, n, s
                [1, 16, 1, 1],
                [6, 24, 2, 2],
                [6, 32, 3, 2],
                [6, 64, 4, 2],
                [6, 96, 3, 1],
                [6, 160, 3, 2],
                [6, 320, 1, 1],
            ]

        # only check the first element, assuming user knows t,c,n,s are required
        if len(inverted_residual_setting) == 0 or len(inverted_residual_setting[0]) != 4:
            raise ValueError(
                "inverted_residual_setting should be non-empty "
                f"or a 4-element list, got {inverted_residual_setting}"
            )

        # building first layer
        input_channel = _make_divisible(input_channel * width_mult, round_nearest)
        self.last_channel = _make_divisible(last_channel * max(1.0, width_mult), round_nearest)
        features: List[nnx.Module] = [ConvBNReLU(3, input_channel, stride=2, rngs=rngs)]
        # building inverted residual blocks
        for t, c, n, s in inverted_residual_setting:
            output_channel = _make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                stride = s if i == 0 else 1
                features.append(
                    InvertedResidual(
                        input_channel, output_channel, stride, expand_ratio=t, rngs=rngs
                    )
                )
                input_channel = output_channel
        # building last several layers
        features.append(ConvBNReLU(input_channel, self.last_channel, kernel_size=1, rngs=rngs))
        # make it nn.Sequential
        self.features = nnx.Sequential(*features)

        # building classifier
        self.classifier = nnx.Sequential(
            nnx.Dropout(dropout, rngs=rngs),
            Linear(self.last_channel, num_classes, rngs=rngs),
        )

        # weight initialization
        for _, m in nnx.iter_modules(self):
            if isinstance(m, Conv2d):
                m.weight[...] = jax.nn.initializers.variance_scaling(
                    2.0, "fan_out", "normal", in_axis=1, out_axis=0
                )(rngs.params(), m.weight.shape, m.weight.dtype)
                if m.bias is not None:
                    m.bias[...] = jnp.zeros_like(m.bias[...])
            elif isinstance(m, BatchNorm2d):
                m.weight[...] = jnp.ones_like(m.weight[...])
                m.bias[...] = jnp.zeros_like(m.bias[...])
            elif isinstance(m, Linear):
                m.kernel[...] = 0.01 * rngs.params.normal(m.kernel.shape, m.kernel.dtype)
                m.bias[...] = jnp.zeros_like(m.bias[...])

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.features(x)
        # Cannot use "squeeze" as batch-size can be 1
        x = jnp.mean(x, axis=(-2, -1), keepdims=True)
        x = x.reshape(x.shape[0], -1)
        x = self.classifier(x)
        return x


def mobilenet_v2_tiny(num_classes: int = 10, *, rngs: nnx.Rngs) -> MobileNetV2:
    """A quarter-width network with one block for each of the first stages, for small images."""
    setting = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 1, 2]]
    return MobileNetV2(num_classes, 0.25, setting, dropout=0.0, rngs=rngs)
