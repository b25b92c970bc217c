"""Sampling on grids, pixel shuffling and sliding blocks, as in torch.nn.functional."""

from __future__ import annotations

import itertools
import math

import jax.numpy as jnp
import numpy as np


def affine_grid(theta, size, align_corners=False):
    """Sampling grid of an affine map: theta (N, r, r + 1), size (N, C, …r) → (N, …r, r).

    Coordinates run from -1 to 1 over the pixel centres (``align_corners``) or edges, last axis first.
    """
    spatial = tuple(size[2:])
    lines = []
    for n in spatial:
        line = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        lines.append(line if align_corners else line * (n - 1) / n)
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(spatial)], -1)
    return jnp.einsum("...j,nij->n...i", jnp.asarray(grid, theta.dtype), theta)


def _inside(at, size, padding_mode, align_corners):
    """Positions with those outside moved to the border or reflected (ATen/native/GridSampler.h)."""
    if padding_mode == "reflection":
        low, span = (0, size - 1) if align_corners else (-0.5, size)
        if span == 0:
            return jnp.zeros_like(at)
        offset = jnp.abs(at - low)
        extra, flips = jnp.fmod(offset, span), jnp.floor(offset / span)
        at = jnp.where(flips % 2 == 0, extra, span - extra) + low
    if padding_mode != "zeros":
        at = jnp.where(at <= 0, 0, jnp.where(at >= size - 1, size - 1, at))
    return at


def _cubic_weights(part, a=-0.75):
    """Keys' kernel at distances 1 + part, part, 1 - part and 2 - part."""

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(part + 1), near(part), near(1 - part), far(2 - part)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    """Values of (N, C, …r) at the positions ``grid`` (N, …out, r) in [-1, 1] → (N, C, …out)."""
    batch, sizes, rank = input.shape[0], input.shape[2:], grid.shape[-1]
    taps = []
    for size, at in zip(sizes, jnp.moveaxis(grid, -1, 0)[::-1], strict=True):
        at = (at + 1) / 2 * (size - 1) if align_corners else ((at + 1) * size - 1) / 2
        if mode == "bicubic":
            base = jnp.floor(at)
            places = [_inside(base + k, size, padding_mode, align_corners) for k in range(-1, 3)]
            taps.append(list(zip(places, _cubic_weights(at - base), strict=True)))
            continue
        at = _inside(at, size, padding_mode, align_corners)
        if mode == "nearest":
            taps.append([(jnp.round(at), 1)])
        else:
            base = jnp.floor(at)
            taps.append([(base, base + 1 - at), (base + 1, at - base)])
    sample = np.arange(batch).reshape(-1, *(1,) * rank)
    output = 0
    for corner in itertools.product(*taps):
        weight, index = 1, []
        for (place, part), size in zip(corner, sizes, strict=True):
            weight = jnp.where((place >= 0) & (place <= size - 1), weight * part, 0)
            index.append(jnp.clip(place, 0, size - 1).astype(int))
        values = jnp.moveaxis(input, 1, -1)[sample, *index]
        output = output + values * weight[..., None]
    return jnp.moveaxis(output, -1, 1).astype(input.dtype)


def pixel_shuffle(input, upscale_factor):
    """Channels to space: (…, C r², H, W) → (…, C, H r, W r)."""
    *lead, channels, height, width = input.shape
    r = upscale_factor
    blocks = input.reshape(*lead, channels // r**2, r, r, height, width)
    blocks = jnp.moveaxis(blocks, (-4, -3), (-3, -1))
    return blocks.reshape(*lead, channels // r**2, height * r, width * r)


def pixel_unshuffle(input, downscale_factor):
    """Space to channels: (…, C, H r, W r) → (…, C r², H, W)."""
    *lead, channels, height, width = input.shape
    r = downscale_factor
    blocks = input.reshape(*lead, channels, height // r, r, width // r, r)
    blocks = jnp.moveaxis(blocks, (-3, -1), (-4, -3))
    return blocks.reshape(*lead, channels * r**2, height // r, width // r)


def channel_shuffle(input, groups):
    """Interleave the channel groups of (N, C, …)."""
    batch, channels, *rest = input.shape
    blocks = input.reshape(batch, groups, channels // groups, *rest)
    return blocks.swapaxes(1, 2).reshape(input.shape)


def _pair(value) -> tuple[int, int]:
    return (value, value) if hasattr(value, "__index__") else tuple(value)


def _block_positions(size, kernel, dilation, padding, stride):
    """Rows and columns (kh, 1, oh, 1), (1, kw, 1, ow) of every block element in the padded plane."""
    lines = []
    for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True):
        starts = np.arange(0, n + 2 * p - d * (k - 1), s)
        lines.append(np.arange(k)[:, None] * d + starts)
    return lines[0][:, None, :, None], lines[1][None, :, None, :]


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding blocks as columns: (N, C, H, W) → (N, C kh kw, blocks); N optional."""
    if input.ndim == 3:
        return unfold(input[None], kernel_size, dilation, padding, stride)[0]
    batch, channels, *size = input.shape
    kernel, padding = _pair(kernel_size), _pair(padding)
    rows, columns = _block_positions(size, kernel, _pair(dilation), padding, _pair(stride))
    padded = jnp.pad(input, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    blocks = rows.shape[2] * columns.shape[3]
    return padded[:, :, rows, columns].reshape(batch, channels * math.prod(kernel), blocks)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Sum of blocks at their places, the transpose of unfold: (N, C kh kw, blocks) → (N, C, H, W)."""
    if input.ndim == 2:
        return fold(input[None], output_size, kernel_size, dilation, padding, stride)[0]
    size, kernel, padding = _pair(output_size), _pair(kernel_size), _pair(padding)
    rows, columns = _block_positions(size, kernel, _pair(dilation), padding, _pair(stride))
    batch, channels = input.shape[0], input.shape[1] // math.prod(kernel)
    blocks = input.reshape(batch, channels, *kernel, rows.shape[2], columns.shape[3])
    (height, width), (top, left) = size, padding
    plane = jnp.zeros((batch, channels, height + 2 * top, width + 2 * left), input.dtype)
    plane = plane.at[:, :, rows, columns].add(blocks)
    return plane[:, :, top : top + height, left : left + width]
