"""torch.nn.functional, padding and vision functions.

``F.pad`` lists the last axis first and crops for negative amounts; resizing differs from ``jax.image.resize`` in where
it samples, in its cubic kernel and in not antialiasing unless told to.
"""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.interpolate import (
    interpolate,
    interpolate_antialias,
    interpolate_area,
    interpolate_bicubic,
    interpolate_linear,
    interpolate_nearest,
)
from rules.compat.padding import pad_axes
from rules.compat.vision import (
    affine_grid,
    channel_shuffle,
    fold,
    grid_sample,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
)
from rules.registry import op, surely


@op(
    "torch.nn.functional.pad",
    example={
        "F.pad(x, (1, 2, 0, 3))": ("jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, 3), (1, 2)])"),
        "F.pad(x, (1, 1), mode='reflect')": "pad_axes(x, (1, 1), mode='reflect')",
    },
)
def f_pad(input, pad, mode="constant", value=None) -> Tensor["same"]:
    """Pad or crop: (before, after) of the last axis, of the one before it, …"""
    if surely(mode == "constant" and not value and min(pad) >= 0):
        pairs = [(pad[2 * i], pad[2 * i + 1]) for i in reversed(range(len(pad) // 2))]
        return jnp.pad(input, [(0, 0)] * (input.ndim - len(pairs)) + pairs)
    return pad_axes(input, pad, mode=mode, value=value)


@op(
    "torch.nn.functional.interpolate",
    "torch.nn.functional.upsample",
    example={
        "F.interpolate(x, scale_factor=2)": "interpolate_nearest(x, scale_factor=2)",
        "F.interpolate(x, (8, 8), mode='bilinear')": "interpolate_linear(x, size=(8, 8))",
    },
)
def f_interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
) -> Tensor["same"]:
    """Resize the spatial axes of (N, C, …)."""
    corners = False if align_corners is None else align_corners
    recompute = False if recompute_scale_factor is None else recompute_scale_factor
    if surely(mode in ("nearest", "nearest-exact")):
        return interpolate_nearest(
            input,
            size=size,
            scale_factor=scale_factor,
            exact=mode == "nearest-exact",
            recompute=recompute,
        )
    if surely(mode == "area"):
        return interpolate_area(input, size=size, scale_factor=scale_factor)
    if surely(antialias and mode in ("bilinear", "bicubic")):
        return interpolate_antialias(
            input,
            size=size,
            scale_factor=scale_factor,
            mode=mode,
            align_corners=corners,
            recompute=recompute,
        )
    if surely(mode in ("linear", "bilinear", "trilinear") and not antialias):
        return interpolate_linear(
            input, size=size, scale_factor=scale_factor, align_corners=corners, recompute=recompute
        )
    if surely(mode == "bicubic" and not antialias):
        return interpolate_bicubic(
            input, size=size, scale_factor=scale_factor, align_corners=corners, recompute=recompute
        )
    return interpolate(
        input,
        size=size,
        scale_factor=scale_factor,
        mode=mode,
        align_corners=align_corners,
        recompute_scale_factor=recompute_scale_factor,
        antialias=antialias,
    )


@op(
    "torch.nn.functional.upsample_nearest",
    example={"F.upsample_nearest(x, scale_factor=2)": "interpolate_nearest(x, scale_factor=2)"},
)
def f_upsample_nearest(input, size=None, scale_factor=None) -> Tensor["same"]:
    """Nearest neighbour resize."""
    return interpolate_nearest(input, size=size, scale_factor=scale_factor)


@op(
    "torch.nn.functional.upsample_bilinear",
    example={
        "F.upsample_bilinear(x, scale_factor=2)": (
            "interpolate_linear(x, scale_factor=2, align_corners=True)"
        )
    },
)
def f_upsample_bilinear(input, size=None, scale_factor=None) -> Tensor["same"]:
    """Bilinear resize with aligned corners."""
    return interpolate_linear(input, size=size, scale_factor=scale_factor, align_corners=True)


@op(
    "torch.nn.functional.affine_grid",
    example={"F.affine_grid(x, (2, 3, 4, 5))": "affine_grid(x, (2, 3, 4, 5))"},
)
def f_affine_grid(theta, size, align_corners=None) -> Tensor["same"]:
    """Sampling grid of an affine map."""
    corners = False if align_corners is None else align_corners
    return affine_grid(theta, size, align_corners=corners)


@op(
    "torch.nn.functional.grid_sample",
    example={"F.grid_sample(x, y)": "grid_sample(x, y)"},
)
def f_grid_sample(
    input, grid, mode="bilinear", padding_mode="zeros", align_corners=None
) -> Tensor["same"]:
    """Values at the positions of a grid in [-1, 1]."""
    corners = False if align_corners is None else align_corners
    return grid_sample(input, grid, mode=mode, padding_mode=padding_mode, align_corners=corners)


@op("torch.grid_sampler", "torch.grid_sampler_2d", "torch.grid_sampler_3d")
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners) -> Tensor["same"]:
    """``grid_sample`` with numbers for the modes."""
    return grid_sample(
        input,
        grid,
        mode=("bilinear", "nearest", "bicubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=align_corners,
    )


@op(
    "torch.nn.functional.pixel_shuffle",
    "torch.pixel_shuffle",
    example={"F.pixel_shuffle(x, 2)": "pixel_shuffle(x, 2)"},
)
def f_pixel_shuffle(input, upscale_factor) -> Tensor["same"]:
    """Channels to space: (…, C r², H, W) → (…, C, H r, W r)."""
    return pixel_shuffle(input, upscale_factor)


@op(
    "torch.nn.functional.pixel_unshuffle",
    "torch.pixel_unshuffle",
    example={"F.pixel_unshuffle(x, 2)": "pixel_unshuffle(x, 2)"},
)
def f_pixel_unshuffle(input, downscale_factor) -> Tensor["same"]:
    """Space to channels: (…, C, H r, W r) → (…, C r², H, W)."""
    return pixel_unshuffle(input, downscale_factor)


@op(
    "torch.nn.functional.channel_shuffle",
    "torch.channel_shuffle",
    "torch.nn.functional.native_channel_shuffle",
    "torch.native_channel_shuffle",
    example={"F.channel_shuffle(x, 2)": "channel_shuffle(x, 2)"},
)
def f_channel_shuffle(input, groups) -> Tensor["same"]:
    """Interleave the channel groups of (N, C, …)."""
    return channel_shuffle(input, groups)


@op(
    "torch.nn.functional.unfold",
    example={"F.unfold(x, 3, padding=1)": "unfold(x, 3, padding=1)"},
)
def f_unfold(input, kernel_size, dilation=1, padding=0, stride=1) -> Tensor["same"]:
    """Sliding blocks as columns: (N, C, H, W) → (N, C kh kw, blocks)."""
    return unfold(input, kernel_size, dilation=dilation, padding=padding, stride=stride)


@op(
    "torch.nn.functional.fold",
    example={"F.fold(x, (4, 5), 2)": "fold(x, (4, 5), 2)"},
)
def f_fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1) -> Tensor["same"]:
    """Sum of blocks at their places: the transpose of unfold."""
    return fold(input, output_size, kernel_size, dilation=dilation, padding=padding, stride=stride)
