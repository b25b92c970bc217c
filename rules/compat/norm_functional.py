"""Normalisation functions over channels-first arrays, as in torch.nn.functional."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import lax


def _normalize(input, mean, var, weight, bias, eps, axis):
    """(x - mean) / sqrt(var + eps) · weight + bias; weight and bias lie along the axes from ``axis``."""
    output = (input - mean) * lax.rsqrt(var + eps)
    for scale, combine in ((weight, jnp.multiply), (bias, jnp.add)):
        if scale is not None:
            after = input.ndim - axis - scale.ndim
            output = combine(output, scale.reshape(*scale.shape, *(1,) * after))
    return output


def _wide(input):
    """The array in at least float32, in which torch computes statistics."""
    return input.astype(jnp.promote_types(input.dtype, jnp.float32))


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Normalise over the last axes, whose sizes are ``normalized_shape``."""
    x, first = _wide(input), input.ndim - len(normalized_shape)
    axes = tuple(range(first, input.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return _normalize(x, mean, var, weight, bias, eps, first).astype(input.dtype)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x²) + eps) over the last axes; ``eps`` is by default that of the dtype."""
    x = _wide(input)
    axes = tuple(range(-len(normalized_shape), 0))
    eps = jnp.finfo(x.dtype).eps if eps is None else eps
    output = x * lax.rsqrt(jnp.mean(x * x, axes, keepdims=True) + eps)
    return (output if weight is None else output * weight).astype(input.dtype)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Normalise (N, C, …) over groups of C / num_groups channels and all later axes."""
    size = math.prod(input.shape[1:]) // num_groups
    x = _wide(input).reshape(input.shape[0], num_groups, size)
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    x = ((x - mean) * lax.rsqrt(var + eps)).reshape(input.shape)
    return _normalize(x, 0, 1.0, weight, bias, 0, 1).astype(input.dtype)


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, eps=1e-5):
    """Normalise the channels of (N, C, …) by the batch's statistics or by the running ones.

    The running statistics are read only.
    """
    x = _wide(input)
    if training or running_mean is None:
        axes = (0, *range(2, x.ndim))
        mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    else:
        per_channel = (-1, *(1,) * (x.ndim - 2))
        mean, var = running_mean.reshape(per_channel), running_var.reshape(per_channel)
    return _normalize(x, mean, var, weight, bias, eps, 1).astype(input.dtype)


def _move(stat, value, momentum):
    """A running statistic, a Variable, towards the value of a batch."""
    stat[...] = ((1 - momentum) * stat[...] + momentum * value).astype(stat.dtype)


def batch_norm_with_update(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """``batch_norm`` of Variables (C,) for the running statistics, which in training move towards the batch's."""
    if running_mean is None:
        return batch_norm(input, None, None, weight, bias, True, eps)
    if training:
        x = lax.stop_gradient(_wide(input))
        axes, count = (0, *range(2, x.ndim)), x.size // x.shape[1]
        _move(running_mean, x.mean(axes), momentum)
        _move(running_var, x.var(axes) * count / (count - 1), momentum)
    return batch_norm(input, running_mean[...], running_var[...], weight, bias, training, eps)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    eps=1e-5,
):
    """Normalise each channel of each sample of (N, C, …) by its own or by the running statistics."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, eps)
    x, axes = _wide(input), tuple(range(2, input.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return _normalize(x, mean, var, weight, bias, eps, 1).astype(input.dtype)


def instance_norm_with_update(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """``instance_norm`` of Variables (C,) for the running statistics, which move towards those of the input."""
    if running_mean is None:
        return instance_norm(input, None, None, weight, bias, True, eps)
    if use_input_stats:
        x = lax.stop_gradient(_wide(input))
        axes, count = tuple(range(2, x.ndim)), math.prod(x.shape[2:])
        _move(running_mean, x.mean((0, *axes)), momentum)
        _move(running_var, x.var(axes).mean(0) * count / (count - 1), momentum)
    return instance_norm(
        input, running_mean[...], running_var[...], weight, bias, use_input_stats, eps
    )


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """x / (k + alpha · mean of x² over ``size`` neighbouring channels)^beta for (N, C, …)."""
    ones = (1,) * (input.ndim - 2)
    padding = [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * len(ones)]
    zero = np.zeros((), input.dtype)
    total = lax.reduce_window(
        input * input, zero, lax.add, (1, size, *ones), (1,) * input.ndim, padding
    )
    mean = (total / size).astype(input.dtype)
    return input / (mean * alpha + k) ** beta


def normalize(input, p=2.0, dim=1, eps=1e-12):
    """x / max(‖x‖_p, eps) over ``dim``, with a finite slope at 0."""
    size = jnp.atleast_1d(jnp.maximum(input, -input))
    if p == 0:
        norm = jnp.sum((size > 0).astype(input.dtype), dim, keepdims=True)
    elif p == math.inf:
        norm = jnp.max(size, dim, keepdims=True)
    else:
        total = jnp.sum(
            jnp.where(size > 0, jnp.where(size > 0, size, 1) ** p, 0), dim, keepdims=True
        )
        norm = jnp.where(total > 0, total, 1) ** (1 / p)
        norm = jnp.where(total > 0, norm, 0)
    return input / jnp.where(norm < eps, eps, norm).reshape(norm.shape[: input.ndim])


def moments(input, axis, eps, keepdims=True):
    """Mean and 1 / sqrt(variance + eps) over ``axis``."""
    x = _wide(input)
    rstd = lax.rsqrt(x.var(axis, keepdims=keepdims) + eps)
    return x.mean(axis, keepdims=keepdims).astype(input.dtype), rstd.astype(input.dtype)
