"""Normalisation: batch, instance, group, layer, RMS and local response."""

from __future__ import annotations

import functools

import jax.numpy as jnp
from flax import nnx

from rules.compat.norm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNormNd,
    LazyBatchNorm1d,
    LazyBatchNorm2d,
    LazyBatchNorm3d,
    LazyInstanceNorm1d,
    LazyInstanceNorm2d,
    LazyInstanceNorm3d,
    RMSNormNd,
    SyncBatchNorm,
)
from rules.compat.norm_functional import local_response_norm
from rules.registry import layer, surely, unsupported


@layer("torch.nn.BatchNorm1d")
def batch_norm1d_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> BatchNorm1d:
    """``momentum`` is the weight of the new value; the running variance is the unbiased one."""
    return BatchNorm1d(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.BatchNorm2d", example={"nn.BatchNorm2d(8)": "BatchNorm2d(8, rngs=rngs)"})
def batch_norm2d_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> BatchNorm2d:
    """``momentum`` is the weight of the new value; the running variance is the unbiased one."""
    return BatchNorm2d(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.BatchNorm3d")
def batch_norm3d_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> BatchNorm3d:
    """``momentum`` is the weight of the new value; the running variance is the unbiased one."""
    return BatchNorm3d(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.SyncBatchNorm")
def sync_batch_norm_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    process_group=None,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> SyncBatchNorm:
    """Under ``jit`` an array is the global batch: the statistics are those of all devices."""
    return SyncBatchNorm(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.InstanceNorm1d")
def instance_norm1d_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=False,
    track_running_stats=False,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> InstanceNorm1d:
    """Each channel of each sample by its own mean and variance."""
    return InstanceNorm1d(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.InstanceNorm2d")
def instance_norm2d_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=False,
    track_running_stats=False,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> InstanceNorm2d:
    """Each channel of each sample by its own mean and variance."""
    return InstanceNorm2d(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.InstanceNorm3d")
def instance_norm3d_layer(
    num_features,
    eps=1e-5,
    momentum=0.1,
    affine=False,
    track_running_stats=False,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> InstanceNorm3d:
    """Each channel of each sample by its own mean and variance."""
    return InstanceNorm3d(
        num_features,
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.GroupNorm", example={"nn.GroupNorm(2, 8)": "GroupNorm(2, 8, rngs=rngs)"})
def group_norm_layer(
    num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True, rngs
) -> GroupNorm:
    """``nnx.GroupNorm`` is channels last."""
    return GroupNorm(
        num_groups, num_channels, eps=eps, affine=affine, bias=bias, dtype=dtype, rngs=rngs
    )


@layer(
    "torch.nn.LayerNorm",
    weights={"weight": "scale", "bias": "bias"},
    example={
        "nn.LayerNorm(8)": "nnx.LayerNorm(8, epsilon=1e-5, use_fast_variance=False, rngs=rngs)",
        "nn.LayerNorm((4, 8))": "LayerNormNd((4, 8), rngs=rngs)",
    },
)
def LayerNorm(
    normalized_shape,
    eps=1e-5,
    elementwise_affine=True,
    bias=True,
    device=None,
    dtype=None,
    *,
    rngs,
) -> nnx.LayerNorm:
    """nnx normalises one axis, and its fast variance E[x²] − E[x]² loses digits.

    Without a weight nnx would take several axes without a word, so that the class that knows both comes first."""
    if surely(isinstance(normalized_shape, (tuple, list)) and len(normalized_shape) == 1):
        normalized_shape = normalized_shape[0]
    if surely(isinstance(normalized_shape, (tuple, list))):
        return LayerNormNd(
            normalized_shape,
            eps=eps,
            elementwise_affine=elementwise_affine,
            bias=bias,
            dtype=dtype,
            rngs=rngs,
        )
    if not surely(elementwise_affine or isinstance(normalized_shape, int)):
        return LayerNormNd(
            normalized_shape,
            eps=eps,
            elementwise_affine=elementwise_affine,
            bias=bias,
            dtype=dtype,
            rngs=rngs,
        )
    return nnx.LayerNorm(
        normalized_shape,
        epsilon=eps,
        use_scale=elementwise_affine,
        use_bias=elementwise_affine and bias,
        use_fast_variance=False,
        param_dtype=dtype or jnp.float32,
        rngs=rngs,
    )


@layer(
    "torch.nn.RMSNorm",
    weights={"weight": "scale"},
    example={
        "nn.RMSNorm(8, eps=1e-6)": "nnx.RMSNorm(8, rngs=rngs)",
        "nn.RMSNorm(8)": "nnx.RMSNorm(8, epsilon=jnp.finfo(jnp.float32).eps, rngs=rngs)",
    },
)
def RMSNorm(
    normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None, *, rngs
) -> nnx.RMSNorm:
    """Without ``eps`` torch uses that of float32."""
    if surely(isinstance(normalized_shape, (tuple, list)) and len(normalized_shape) == 1):
        normalized_shape = normalized_shape[0]
    if surely(isinstance(normalized_shape, (tuple, list))):
        return RMSNormNd(
            normalized_shape,
            eps=eps,
            elementwise_affine=elementwise_affine,
            dtype=dtype,
            rngs=rngs,
        )
    if not surely(elementwise_affine or isinstance(normalized_shape, int)):
        return RMSNormNd(
            normalized_shape,
            eps=eps,
            elementwise_affine=elementwise_affine,
            dtype=dtype,
            rngs=rngs,
        )
    return nnx.RMSNorm(
        normalized_shape,
        epsilon=jnp.finfo(jnp.float32).eps if eps is None else eps,
        use_scale=elementwise_affine,
        param_dtype=dtype or jnp.float32,
        rngs=rngs,
    )


@layer("torch.nn.LocalResponseNorm")
def LocalResponseNorm(size, alpha=1e-4, beta=0.75, k=1.0, *, rngs=None) -> Callable:
    """x / (k + alpha · mean of x² over ``size`` neighbouring channels)^beta."""
    return functools.partial(local_response_norm, size=size, alpha=alpha, beta=beta, k=k)


@layer("torch.nn.CrossMapLRN2d")
def CrossMapLRN2d(size, alpha=1e-4, beta=0.75, k=1, *, rngs=None) -> Callable:
    """Refused: torch leaves the first channel in the windows of all later ones, and its gradient does not."""
    unsupported("torch sums the first channel into every later window; use LocalResponseNorm")


@layer("torch.nn.LazyBatchNorm1d")
def lazy_batch_norm1d_layer(
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> LazyBatchNorm1d:
    """Built on the first call, from the channels of its input."""
    return LazyBatchNorm1d(
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyBatchNorm2d")
def lazy_batch_norm2d_layer(
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> LazyBatchNorm2d:
    """Built on the first call, from the channels of its input."""
    return LazyBatchNorm2d(
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyBatchNorm3d")
def lazy_batch_norm3d_layer(
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> LazyBatchNorm3d:
    """Built on the first call, from the channels of its input."""
    return LazyBatchNorm3d(
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyInstanceNorm1d")
def lazy_instance_norm1d_layer(
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> LazyInstanceNorm1d:
    """Built on the first call, from the channels of its input."""
    return LazyInstanceNorm1d(
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyInstanceNorm2d")
def lazy_instance_norm2d_layer(
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> LazyInstanceNorm2d:
    """Built on the first call, from the channels of its input."""
    return LazyInstanceNorm2d(
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyInstanceNorm3d")
def lazy_instance_norm3d_layer(
    eps=1e-5,
    momentum=0.1,
    affine=True,
    track_running_stats=True,
    device=None,
    dtype=None,
    *,
    bias=True,
    rngs,
) -> LazyInstanceNorm3d:
    """Built on the first call, from the channels of its input."""
    return LazyInstanceNorm3d(
        eps=eps,
        momentum=momentum,
        affine=affine,
        track_running_stats=track_running_stats,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )
