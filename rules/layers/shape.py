"""Layers that rearrange or resize: flatten, pixel shuffles, folds, up-sampling."""

from __future__ import annotations

import functools

from rules.compat.interpolate import (
    interpolate,
    interpolate_bicubic,
    interpolate_linear,
    interpolate_nearest,
)
from rules.compat.layer_functions import flatten, unflatten
from rules.compat.vision import channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold
from rules.registry import layer, surely, unsupported


@layer(
    "torch.nn.Flatten",
    example={
        "nn.Flatten()": "flatten",
        "nn.Flatten(0, 1)": "functools.partial(flatten, start_dim=0, end_dim=1)",
    },
)
def Flatten(start_dim=1, end_dim=-1, *, rngs=None) -> Callable:
    """Axes start_dim … end_dim made one; by default all but the first."""
    return functools.partial(flatten, start_dim=start_dim, end_dim=end_dim)


@layer("torch.nn.Unflatten")
def Unflatten(dim, unflattened_size, *, rngs=None) -> Callable:
    """One axis split into several."""
    if isinstance(dim, str):
        unsupported("named axes")
    return functools.partial(unflatten, dim=dim, sizes=unflattened_size)


@layer(
    "torch.nn.Upsample",
    example={
        "nn.Upsample(scale_factor=2)": "functools.partial(interpolate_nearest, scale_factor=2)",
        "nn.Upsample(scale_factor=2, mode='bilinear')": (
            "functools.partial(interpolate_linear, scale_factor=2)"
        ),
    },
)
def Upsample(
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    *,
    rngs=None,
) -> Callable:
    """Nearest by default; the whole of ``interpolate`` only where the mode is not written out."""
    corners = False if align_corners is None else align_corners
    recompute = False if recompute_scale_factor is None else recompute_scale_factor
    if surely(mode in ("nearest", "nearest-exact")):
        return functools.partial(
            interpolate_nearest,
            size=size,
            scale_factor=scale_factor,
            exact=mode == "nearest-exact",
            recompute=recompute,
        )
    if surely(mode in ("linear", "bilinear", "trilinear")):
        return functools.partial(
            interpolate_linear,
            size=size,
            scale_factor=scale_factor,
            align_corners=corners,
            recompute=recompute,
        )
    if surely(mode == "bicubic"):
        return functools.partial(
            interpolate_bicubic,
            size=size,
            scale_factor=scale_factor,
            align_corners=corners,
            recompute=recompute,
        )
    return functools.partial(
        interpolate,
        size=size,
        scale_factor=scale_factor,
        mode=mode,
        align_corners=align_corners,
        recompute_scale_factor=recompute_scale_factor,
    )


@layer("torch.nn.UpsamplingNearest2d")
def UpsamplingNearest2d(size=None, scale_factor=None, *, rngs=None) -> Callable:
    """``Upsample`` by nearest neighbour."""
    return functools.partial(interpolate_nearest, size=size, scale_factor=scale_factor)


@layer("torch.nn.UpsamplingBilinear2d")
def UpsamplingBilinear2d(size=None, scale_factor=None, *, rngs=None) -> Callable:
    """``Upsample`` bilinearly with aligned corners."""
    return functools.partial(
        interpolate_linear, size=size, scale_factor=scale_factor, align_corners=True
    )


@layer("torch.nn.PixelShuffle")
def PixelShuffle(upscale_factor, *, rngs=None) -> Callable:
    """Channels to space."""
    return functools.partial(pixel_shuffle, upscale_factor=upscale_factor)


@layer("torch.nn.PixelUnshuffle")
def PixelUnshuffle(downscale_factor, *, rngs=None) -> Callable:
    """Space to channels."""
    return functools.partial(pixel_unshuffle, downscale_factor=downscale_factor)


@layer("torch.nn.ChannelShuffle")
def ChannelShuffle(groups, *, rngs=None) -> Callable:
    """Channel groups interleaved."""
    return functools.partial(channel_shuffle, groups=groups)


@layer("torch.nn.Unfold")
def Unfold(kernel_size, dilation=1, padding=0, stride=1, *, rngs=None) -> Callable:
    """Sliding blocks as columns."""
    return functools.partial(
        unfold, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )


@layer("torch.nn.Fold")
def Fold(output_size, kernel_size, dilation=1, padding=0, stride=1, *, rngs=None) -> Callable:
    """Blocks summed at their places."""
    return functools.partial(
        fold,
        output_size=output_size,
        kernel_size=kernel_size,
        dilation=dilation,
        padding=padding,
        stride=stride,
    )
