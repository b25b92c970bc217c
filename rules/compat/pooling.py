"""Pooling over trailing axes with torch's window arithmetic (torch.nn.functional, "Pooling functions")."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def per_axis(value, rank: int) -> tuple[int, ...]:
    """One int per spatial axis from an int, a sequence of one, or a sequence of ``rank``."""
    return (value,) * rank if hasattr(value, "__index__") else tuple(value) * (rank // len(value))


def pool_padding(shape, kernel, stride, padding, dilation, ceil_mode) -> list[tuple[int, int]]:
    """(low, high) padding of each pooled axis; ``ceil_mode`` extends the right end.

    A window that would start in the right padding is dropped (ATen/native/Pool.h).
    """
    pairs = []
    for size, k, s, p, d in zip(shape, kernel, stride, padding, dilation, strict=True):
        room = size + 2 * p - d * (k - 1) - 1
        extra = -room % s if ceil_mode else 0
        pairs.append((p, p if room + extra >= size + p else p + extra))
    return pairs


def _max_pool(rank, input, kernel_size, stride, padding):
    kernel, strides = per_axis(kernel_size, rank), per_axis(stride or kernel_size, rank)
    floating = jnp.issubdtype(input.dtype, jnp.floating)
    least = np.array(-np.inf if floating else jnp.iinfo(input.dtype).min, input.dtype)
    lead = (1,) * (input.ndim - rank)
    pads = [(0, 0)] * len(lead) + [(p, p) for p in per_axis(padding, rank)]
    return lax.reduce_window(input, least, lax.max, lead + kernel, lead + strides, pads)


def max_pool1d(input, kernel_size, stride=None, padding=0):
    """Largest value of each window: (…, L) → (…, L_out)."""
    return _max_pool(1, input, kernel_size, stride, padding)


def max_pool2d(input, kernel_size, stride=None, padding=0):
    """Largest value of each window: (…, H, W) → (…, H_out, W_out)."""
    return _max_pool(2, input, kernel_size, stride, padding)


def max_pool3d(input, kernel_size, stride=None, padding=0):
    """Largest value of each window: (…, D, H, W) → (…, D_out, H_out, W_out)."""
    return _max_pool(3, input, kernel_size, stride, padding)


def ceil_max_pool(rank, input, kernel_size, stride=None, padding=0):
    """Max pooling over the last ``rank`` axes whose last window may hang over the right end."""
    kernel, pad = per_axis(kernel_size, rank), per_axis(padding, rank)
    stride = per_axis(stride, rank) if stride else kernel
    lead = (1,) * (input.ndim - rank)
    pairs = pool_padding(input.shape[-rank:], kernel, stride, pad, (1,) * rank, True)
    floating = jnp.issubdtype(input.dtype, jnp.floating)
    least = np.array(-np.inf if floating else jnp.iinfo(input.dtype).min, input.dtype)
    pads = [(0, 0)] * len(lead) + pairs
    return lax.reduce_window(input, least, lax.max, lead + kernel, lead + stride, pads)


def max_of_windows(input, windows):
    """First largest value of each window and its flat position in the spatial axes.

    ``windows`` holds, for each of the trailing axes, the positions (windows, window size) that
    belong to each window. Shapes: (…, D_1 … D_n) → two arrays (…, W_1 … W_n).
    """
    rank = len(windows)
    flat = np.zeros((1,) * (2 * rank), np.int32)
    for axis, positions in enumerate(windows):
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = positions.shape
        flat = flat * input.shape[axis - rank] + positions.reshape(shape)
    flat = flat.reshape(flat.shape[:rank] + (-1,))
    values = input.reshape(input.shape[:-rank] + (-1,))[..., flat]
    best = jnp.argmax(values, axis=-1, keepdims=True)
    positions = jnp.take_along_axis(jnp.broadcast_to(flat, values.shape), best, axis=-1)
    return jnp.take_along_axis(values, best, axis=-1)[..., 0], positions[..., 0]


def max_pool_with_indices(
    rank, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False
):
    """Max pooling over the last ``rank`` axes with dilation, and the flat index of each maximum."""
    kernel, pad = per_axis(kernel_size, rank), per_axis(padding, rank)
    stride = per_axis(stride, rank) if stride else kernel
    dilation = per_axis(dilation, rank)
    sizes = input.shape[-rank:]
    pairs = pool_padding(sizes, kernel, stride, pad, dilation, ceil_mode)
    windows = []
    for size, k, s, d, (low, high) in zip(sizes, kernel, stride, dilation, pairs, strict=True):
        starts = np.arange(0, size + low + high - d * (k - 1), s)[:, None] - low
        positions = starts + d * np.arange(k)
        # A position in the padding stands for the nearest one of its window that is inside.
        first = starts + d * np.maximum(-(starts // d), 0)
        last = starts + d * np.minimum((size - 1 - starts) // d, k - 1)
        windows.append(np.clip(positions, first, last))
    return max_of_windows(input, windows)


def _avg_pool(
    rank, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    kernel, pad = per_axis(kernel_size, rank), per_axis(padding, rank)
    stride = per_axis(stride, rank) if stride else kernel
    sizes, lead = input.shape[-rank:], (1,) * (input.ndim - rank)
    pairs = pool_padding(sizes, kernel, stride, pad, (1,) * rank, ceil_mode)
    zero, pads = np.zeros((), input.dtype), [(0, 0)] * len(lead) + pairs
    total = lax.reduce_window(input, zero, lax.add, lead + kernel, lead + stride, pads)
    count = divisor_override or math.prod(kernel)
    if not divisor_override and (ceil_mode or not count_include_pad):
        count = np.ones((), int)
        for size, k, s, p, out in zip(sizes, kernel, stride, pad, total.shape[-rank:], strict=True):
            start, edge = np.arange(out) * s - p, p if count_include_pad else 0
            inside = np.minimum(start + k, size + edge) - np.maximum(start, -edge)
            count = count[..., None] * inside
    return (total / count).astype(input.dtype)


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Mean of each window: (…, L) → (…, L_out), as torch's avg_pool1d."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window: (…, H, W) → (…, H_out, W_out), as torch's avg_pool2d."""
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    """Mean of each window: (…, D, H, W) → (…, D_out, H_out, W_out), as torch's avg_pool3d."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_windows(size: int, out: int) -> list[tuple[int, int]]:
    """[start, stop) of the ``out`` windows that cover ``size`` (ATen/native/AdaptivePooling.h)."""
    return [(i * size // out, -(-(i + 1) * size // out)) for i in range(out)]


def _adaptive_avg_pool(rank, input, output_size):
    sizes = output_sizes(output_size, input, rank)
    for axis, out in zip(range(input.ndim - rank, input.ndim), sizes, strict=True):
        shape = input.shape
        if shape[axis] % out == 0:
            split = (*shape[:axis], out, shape[axis] // out, *shape[axis + 1 :])
            input = input.reshape(split).mean(axis + 1)
            continue
        parts = [
            lax.slice_in_dim(input, start, stop, axis=axis).mean(axis, keepdims=True)
            for start, stop in adaptive_windows(shape[axis], out)
        ]
        input = jnp.concatenate(parts, axis)
    return input


def output_sizes(output_size, input, rank: int) -> tuple[int, ...]:
    """Output sizes of the last ``rank`` axes; None keeps the input's."""
    sizes = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    return tuple(
        n if out is None else out for n, out in zip(input.shape[-rank:], sizes, strict=True)
    )


def adaptive_avg_pool1d(input, output_size):
    """Mean of the windows that cover the axis evenly: (…, L) → (…, output_size)."""
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """Mean of the windows that cover the axes evenly: (…, H, W) → (…, *output_size)."""
    return _adaptive_avg_pool(2, input, output_size)


def adaptive_avg_pool3d(input, output_size):
    """Mean of the windows that cover the axes evenly: (…, D, H, W) → (…, *output_size)."""
    return _adaptive_avg_pool(3, input, output_size)


def adaptive_max_pool_with_indices(rank, input, output_size):
    """Max of the windows that cover the last ``rank`` axes evenly, and their flat indices."""
    windows = []
    for size, out in zip(input.shape[-rank:], output_sizes(output_size, input, rank), strict=True):
        bounds = np.array(adaptive_windows(size, out)).reshape(out, 2)
        width = np.max(bounds[:, 1] - bounds[:, 0], initial=1)
        windows.append(np.minimum(bounds[:, :1] + np.arange(width), bounds[:, 1:] - 1))
    return max_of_windows(input, windows)


def adaptive_max_pool1d(input, output_size):
    """Max of the windows that cover the axis evenly: (…, L) → (…, output_size)."""
    return adaptive_max_pool_with_indices(1, input, output_size)[0]


def adaptive_max_pool2d(input, output_size):
    """Max of the windows that cover the axes evenly: (…, H, W) → (…, *output_size)."""
    return adaptive_max_pool_with_indices(2, input, output_size)[0]


def adaptive_max_pool3d(input, output_size):
    """Max of the windows that cover the axes evenly: (…, D, H, W) → (…, *output_size)."""
    return adaptive_max_pool_with_indices(3, input, output_size)[0]


def lp_pool(rank, input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum over each window of x^p)^(1/p), nan for a negative sum: torch's lp_poolNd."""
    if math.isinf(norm_type):
        sign, pool = math.copysign(1, norm_type), ceil_max_pool if ceil_mode else _max_pool
        return sign * pool(rank, sign * jnp.abs(input), kernel_size, stride, 0)
    kernel = per_axis(kernel_size, rank)
    mean = _avg_pool(rank, input**norm_type, kernel, stride, 0, ceil_mode, True, None)
    total = mean * math.prod(kernel)
    root = jnp.where(total == 0, 1, total) ** (1 / norm_type)
    return jnp.where(total == 0, 0, root)


def max_unpool(rank, input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Values put back at the flat ``indices`` that max pooling returned, zeros elsewhere.

    Shapes: (…, W_1 … W_n) → (…, D_1 … D_n), by default with
    D = (W - 1) · stride - 2 · padding + kernel_size.
    """
    kernel, pad = per_axis(kernel_size, rank), per_axis(padding, rank)
    stride = per_axis(stride, rank) if stride else kernel
    if output_size is None:
        output_size = [
            (w - 1) * s - 2 * p + k
            for w, s, p, k in zip(input.shape[-rank:], stride, pad, kernel, strict=True)
        ]
    lead = input.shape[:-rank]
    rows = math.prod(lead)
    values = input.reshape(rows, -1)
    planes = jnp.zeros((rows, math.prod(output_size[-rank:])), input.dtype)
    places = planes.at[np.arange(rows)[:, None], indices.reshape(rows, -1)]
    # Windows may name one position twice: one value stays, the gradient goes to all of them.
    total = places.add(values)
    planes = places.set(lax.stop_gradient(values)) + (total - lax.stop_gradient(total))
    return planes.reshape(*lead, *output_size[-rank:])


def fractional_max_pool(
    rank, input, kernel_size, output_size=None, output_ratio=None, samples=None, *, rngs=None
):
    """Max pooling of (N, C, …) at pseudo-random window starts (Graham, "Fractional Max-Pooling").

    ``samples`` (N, C, rank) in [0, 1) fix the starts, as torch's ``_random_samples``. Returns the
    values and their flat positions.
    """
    sizes, lead = input.shape[-rank:], input.shape[:-rank]
    kernel = per_axis(kernel_size, rank)
    if output_size is None:
        ratio = output_ratio if isinstance(output_ratio, tuple) else (output_ratio,) * rank
        output_size = [int(size * r) for size, r in zip(sizes, ratio, strict=True)]
    outs = per_axis(output_size, rank)
    if samples is None:
        samples = rngs.uniform((*lead, rank), input.dtype)
    if rank == 2:  # torch lists the sample of the last axis first
        samples = samples[..., ::-1]

    def pool(plane, sample):
        flat = jnp.zeros((1,) * (2 * rank), int)
        for axis, (size, k, out) in enumerate(zip(sizes, kernel, outs, strict=True)):
            step = (size - k) / max(out - 1, 1)
            starts = jnp.trunc((jnp.arange(out) + sample[axis]) * step)
            starts = (starts - jnp.trunc(sample[axis] * step)).astype(int).at[-1].set(size - k)
            shape = [1] * (2 * rank)
            shape[axis], shape[rank + axis] = out, k
            flat = flat * size + (starts[:, None] + jnp.arange(k)).reshape(shape)
        flat = flat.reshape(*outs, -1)
        values = plane.reshape(-1)[flat]
        best = jnp.argmax(values, axis=-1, keepdims=True)
        return [jnp.take_along_axis(a, best, axis=-1)[..., 0] for a in (values, flat)]

    planes = input.reshape(-1, *sizes)
    found = jax.vmap(pool)(planes, samples.reshape(-1, rank))
    return tuple(array.reshape(*lead, *outs) for array in found)
