"""Normalisation layers over channels-first arrays (N, C, *spatial), as in torch.nn."""

from __future__ import annotations

import math

import jax.numpy as jnp
from flax import nnx
from jax import lax


class BatchNorm(nnx.Module):
    """Batch normalisation of (N, C, *spatial); the running variance is the unbiased one."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        bias=True,
        dtype=None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.weight = nnx.Param(jnp.ones(num_features, dtype)) if affine else None
        self.bias = nnx.Param(jnp.zeros(num_features, dtype)) if affine and bias else None
        self.use_running_average, self.track_running_stats = False, track_running_stats
        if track_running_stats:
            self.running_mean = nnx.BatchStat(jnp.zeros(num_features, dtype))
            self.running_var = nnx.BatchStat(jnp.ones(num_features, dtype))
            self.num_batches_tracked = nnx.BatchStat(jnp.array(0))
        else:
            self.running_mean = self.running_var = self.num_batches_tracked = None

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        if self.use_running_average and self.running_mean is not None:
            mean, var = self.running_mean[...], self.running_var[...]
        else:
            axes = (0, *range(2, x.ndim))
            mean, var = x.mean(axes), x.var(axes)
            if self.track_running_stats:
                self.num_batches_tracked[...] += 1
                self.update(mean, var, x.size // x.shape[1])
        per_channel = (-1, *(1,) * (x.ndim - 2))
        scale = lax.rsqrt(var + self.eps)
        if self.weight is not None:
            scale = scale * self.weight[...]
        x = (x - mean.reshape(per_channel)) * scale.reshape(per_channel)
        if self.bias is not None:
            x = x + self.bias[...].reshape(per_channel)
        return x.astype(input.dtype)

    def update(self, mean, var, count):
        new = 1 / self.num_batches_tracked[...] if self.momentum is None else self.momentum
        pairs = (self.running_mean, mean), (self.running_var, var * count / (count - 1))
        for stat, value in pairs if count and self.running_mean is not None else ():
            stat[...] = ((1 - new) * stat[...] + new * lax.stop_gradient(value)).astype(stat.dtype)


class BatchNorm1d(BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L)."""


class BatchNorm2d(BatchNorm):
    """Batch normalisation of (N, C, H, W)."""


class BatchNorm3d(BatchNorm):
    """Batch normalisation of (N, C, D, H, W)."""


class SyncBatchNorm(BatchNorm):
    """Batch normalisation over the global batch, which is what an array means under ``jit``."""


class InstanceNorm(BatchNorm):
    """Normalisation of each channel of each sample of (N, C, *spatial), N optional."""

    spatial: int

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        bias=True,
        dtype=None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        options = {"affine": affine, "track_running_stats": track_running_stats, "bias": bias}
        super().__init__(num_features, eps, momentum or 0.0, dtype=dtype, **options)

    def __call__(self, input):
        if input.ndim == self.spatial + 1:
            return self(input[None])[0]
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        per_channel = (-1, *(1,) * self.spatial)
        if self.use_running_average and self.track_running_stats:
            mean = self.running_mean[...].reshape(per_channel)
            var = self.running_var[...].reshape(per_channel)
        else:
            axes = tuple(range(2, x.ndim))
            mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
            if self.running_mean is not None:
                self.update(mean.mean(0).ravel(), var.mean(0).ravel(), math.prod(x.shape[2:]))
        x = (x - mean) * lax.rsqrt(var + self.eps)
        if self.weight is not None:
            x = x * self.weight[...].reshape(per_channel)
        if self.bias is not None:
            x = x + self.bias[...].reshape(per_channel)
        return x.astype(input.dtype)


class InstanceNorm1d(InstanceNorm):
    """Instance normalisation of (N, C, L)."""

    spatial = 1


class InstanceNorm2d(InstanceNorm):
    """Instance normalisation of (N, C, H, W)."""

    spatial = 2


class InstanceNorm3d(InstanceNorm):
    """Instance normalisation of (N, C, D, H, W)."""

    spatial = 3


class LazyNorm(nnx.Module):
    """Mixin: parameters and statistics are made on the first call, for the channels of its input."""

    def __init__(self, *args, rngs: nnx.Rngs | None = None, **options):
        self.num_features, self.use_running_average = None, False
        self.args, self.options = args, tuple(options.items())
        self.weight, self.bias = nnx.data(None), nnx.data(None)

    def __call__(self, input):
        if self.num_features is None:
            evaluating = self.use_running_average
            unbatched = input.ndim == getattr(self, "spatial", 0) + 1  # instance norms only
            channels = input.shape[0 if unbatched else 1]
            super().__init__(channels, *self.args, **dict(self.options))
            self.use_running_average = evaluating
        return super().__call__(input)


class LazyBatchNorm1d(LazyNorm, BatchNorm1d):
    """``BatchNorm1d`` that learns ``num_features`` on its first call."""


class LazyBatchNorm2d(LazyNorm, BatchNorm2d):
    """``BatchNorm2d`` that learns ``num_features`` on its first call."""


class LazyBatchNorm3d(LazyNorm, BatchNorm3d):
    """``BatchNorm3d`` that learns ``num_features`` on its first call."""


class LazyInstanceNorm1d(LazyNorm, InstanceNorm1d):
    """``InstanceNorm1d`` that learns ``num_features`` on its first call."""


class LazyInstanceNorm2d(LazyNorm, InstanceNorm2d):
    """``InstanceNorm2d`` that learns ``num_features`` on its first call."""


class LazyInstanceNorm3d(LazyNorm, InstanceNorm3d):
    """``InstanceNorm3d`` that learns ``num_features`` on its first call."""


class GroupNorm(nnx.Module):
    """Normalisation of (N, C, *) over groups of C / num_groups channels and all later axes."""

    def __init__(
        self,
        num_groups,
        num_channels,
        eps=1e-5,
        affine=True,
        bias=True,
        dtype=None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = nnx.Param(jnp.ones(num_channels, dtype)) if affine else None
        self.bias = nnx.Param(jnp.zeros(num_channels, dtype)) if affine and bias else None

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        x = x.reshape(len(x), self.num_groups, -1)
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        x = ((x - mean) * lax.rsqrt(var + self.eps)).reshape(input.shape)
        shape = (-1, *(1,) * (input.ndim - 2))
        if self.weight is not None:
            x = x * self.weight[...].reshape(shape)
        if self.bias is not None:
            x = x + self.bias[...].reshape(shape)
        return x.astype(input.dtype)


class LayerNormOfInput(nnx.LayerNorm):
    """``nnx.LayerNorm`` whose result has the dtype of the input, as torch's, whatever that of the parameters."""

    def __call__(self, x):
        return super().__call__(x).astype(x.dtype)


class RMSNormOfInput(nnx.RMSNorm):
    """``nnx.RMSNorm`` whose result has the dtype of the input, as torch's, whatever that of the parameters."""

    def __call__(self, x):
        return super().__call__(x).astype(x.dtype)


class LayerNormNd(nnx.LayerNorm):
    """``nnx.LayerNorm`` over the last axes, whose shape is ``normalized_shape``, with torch's arguments."""

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        dtype=None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        if hasattr(normalized_shape, "__index__"):
            normalized_shape = (normalized_shape,)
        self.normalized_shape, self.eps = tuple(normalized_shape), eps
        self.elementwise_affine = affine = elementwise_affine
        self.scale = nnx.Param(jnp.ones(normalized_shape, dtype)) if affine else None
        self.bias = nnx.Param(jnp.zeros(normalized_shape, dtype)) if affine and bias else None

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        axes = tuple(range(-len(self.normalized_shape), 0))
        x = x - x.mean(axes, keepdims=True)
        x = x * lax.rsqrt((x * x).mean(axes, keepdims=True) + self.eps)
        if self.scale is not None:
            x = x * self.scale[...]
        if self.bias is not None:
            x = x + self.bias[...]
        return x.astype(input.dtype)


class RMSNormNd(nnx.RMSNorm):
    """``nnx.RMSNorm`` over the last axes, whose shape is ``normalized_shape``, with torch's arguments."""

    def __init__(
        self,
        normalized_shape,
        eps=None,
        elementwise_affine=True,
        dtype=None,
        *,
        rngs: nnx.Rngs | None = None,
    ):
        if hasattr(normalized_shape, "__index__"):
            normalized_shape = (normalized_shape,)
        self.normalized_shape, self.eps = tuple(normalized_shape), eps
        self.elementwise_affine = affine = elementwise_affine
        self.scale = nnx.Param(jnp.ones(normalized_shape, dtype)) if affine else None

    def __call__(self, input):
        x = input.astype(jnp.promote_types(input.dtype, jnp.float32))
        axes = tuple(range(-len(self.normalized_shape), 0))
        eps = jnp.finfo(x.dtype).eps if self.eps is None else self.eps
        x = x * lax.rsqrt((x * x).mean(axes, keepdims=True) + eps)
        return (x if self.scale is None else x * self.scale[...]).astype(input.dtype)
