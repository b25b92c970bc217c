"""torch.nn.functional.interpolate: source positions, weights and sizes as ATen computes them."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from rules.compat.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)


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


def _real(input):
    """The dtype ATen computes positions and weights in."""
    return np.float64 if input.dtype == np.float64 else np.float32


def interpolate_nearest(input, size=None, scale_factor=None, exact=False, recompute=False):
    """Nearest neighbour resize of (N, C, …); ``exact`` is torch's "nearest-exact"."""
    for axis, old, new, step in _targets(input, size, scale_factor, recompute):
        at = (np.arange(new, dtype=np.float32) + np.float32(0.5 * exact)) * np.float32(step)
        index = np.minimum(at.astype(int), old - 1)
        if not exact and new == 2 * old:  # ATen's shortcut
            index = np.arange(new) // 2
        times = max(new // old, 1)
        if np.array_equal(index, np.arange(old).repeat(times)):
            input = jnp.repeat(input, times, axis)
        else:
            input = jnp.take(input, index, axis)
    return input


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


def _cubic(x, a):
    """Keys' cubic convolution kernel."""
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def interpolate_bicubic(input, size=None, scale_factor=None, align_corners=False, recompute=False):
    """Cubic resize of (N, C, H, W) with a = -0.75, without antialiasing."""
    dtype, real = input.dtype, _real(input)
    for axis, old, new, step in _targets(input, size, scale_factor, recompute):
        at = np.arange(new, dtype=real)
        if align_corners:
            at = at * real((old - 1) / max(new - 1, 1))
        else:
            at = real(step) * (at + real(0.5)) - real(0.5)
        base = np.floor(at)
        offsets = np.arange(-1, 3)
        weight = _cubic((at - base)[:, None] - offsets, -0.75).astype(real)
        index = np.clip(base.astype(int)[:, None] + offsets, 0, old - 1)
        input = _weighted(input, axis, index, weight)
    return input.astype(dtype)


def interpolate_antialias(
    input, size=None, scale_factor=None, mode="bilinear", align_corners=False, recompute=False
):
    """Resize of (N, C, H, W) whose filter widens with the reduction, as Pillow does."""
    dtype, real = input.dtype, _real(input)
    radius = 1 if mode == "bilinear" else 2
    for axis, old, new, step in reversed(list(_targets(input, size, scale_factor, recompute))):
        if old == new:
            continue  # ATen leaves such an axis as it is, whatever the scale
        if align_corners:
            step = (old - 1) / (new - 1) if new > 1 else 0
        widen = max(step, 1)
        center = step * (np.arange(new) + 0.5)
        first = np.maximum((center - radius * widen + 0.5).astype(int), 0)
        last = np.minimum((center + radius * widen + 0.5).astype(int), old)
        index = first[:, None] + np.arange(np.max(last - first))
        at = (index - center[:, None] + 0.5) / widen
        filter = np.maximum(1 - np.abs(at), 0) if mode == "bilinear" else _cubic(at, -0.5)
        filter = np.where(index < last[:, None], filter, 0)
        weight = (filter / filter.sum(1, keepdims=True)).astype(real)
        input = _weighted(input, axis, np.minimum(index, old - 1), weight)
    return input.astype(dtype)


def interpolate_area(input, size=None, scale_factor=None):
    """Adaptive average of (N, C, …): torch's mode="area"."""
    sizes = [new for _, _, new, _ in _targets(input, size, scale_factor)]
    pools = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}
    return pools[input.ndim](input, sizes)


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resize the spatial axes of (N, C, …) to ``size`` or by ``scale_factor``, as torch's interpolate."""
    target = (input, size, scale_factor)
    if mode in ("nearest", "nearest-exact"):
        exact = mode == "nearest-exact"
        return interpolate_nearest(*target, exact=exact, recompute=recompute_scale_factor)
    if mode == "area":
        return interpolate_area(*target)
    if antialias:
        return interpolate_antialias(*target, mode, align_corners, recompute_scale_factor)
    resize = interpolate_bicubic if mode == "bicubic" else interpolate_linear
    return resize(*target, align_corners, recompute_scale_factor)
