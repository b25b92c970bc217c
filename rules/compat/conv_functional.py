"""Convolutions in torch's layouts: input (N, C, …), weight (O, I/groups, …)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.compat.pooling import per_axis


def _conv(rank, input, weight, bias, stride, padding, dilation, groups):
    if input.ndim == rank + 1:
        return _conv(rank, input[None], weight, bias, stride, padding, dilation, groups)[0]
    if isinstance(padding, str):
        padding = padding.upper()
    else:
        padding = [(p, p) for p in per_axis(padding, rank)]
    output = lax.conv_general_dilated(
        input,
        jnp.asarray(weight),  # a parameter, too
        per_axis(stride, rank),
        padding,
        rhs_dilation=per_axis(dilation, rank),
        feature_group_count=groups,
    )
    return output if bias is None else output + bias.reshape(-1, *(1,) * rank)


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Correlate (N, C, L) with weight (O, C/groups, K) → (N, O, L_out), as torch's conv1d."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Correlate (N, C, H, W) with weight (O, C/groups, KH, KW), as torch's conv2d."""
    return _conv(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Correlate (N, C, D, H, W) with weight (O, C/groups, KD, KH, KW), as torch's conv3d."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups)


def _conv_transpose(rank, input, weight, bias, stride, padding, output_padding, groups, dilation):
    if input.ndim == rank + 1:
        arguments = (bias, stride, padding, output_padding, groups, dilation)
        return _conv_transpose(rank, input[None], weight, *arguments)[0]
    dilation, kernel = per_axis(dilation, rank), weight.shape[2:]
    amounts = zip(
        dilation,
        kernel,
        per_axis(padding, rank),
        per_axis(output_padding, rank),
        strict=True,
    )
    # The gradient of a convolution: dilate the input by the stride, correlate with the flipped kernel.
    weight = jnp.flip(weight, range(2, rank + 2)).reshape(groups, -1, *weight.shape[1:])
    weight = weight.swapaxes(1, 2).reshape(-1, input.shape[1] // groups, *kernel)
    output = lax.conv_general_dilated(
        input,
        weight,
        (1,) * rank,
        [(d * (k - 1) - p, d * (k - 1) - p + extra) for d, k, p, extra in amounts],
        lhs_dilation=per_axis(stride, rank),
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    return output if bias is None else output + bias.reshape(-1, *(1,) * rank)


def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """Transposed convolution of (N, C, L) with weight (C, O/groups, K), as torch's."""
    return _conv_transpose(
        1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """Transposed convolution of (N, C, H, W) with weight (C, O/groups, KH, KW), as torch's."""
    return _conv_transpose(
        2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """Transposed convolution of (N, C, D, H, W) with weight (C, O/groups, KD, KH, KW)."""
    return _conv_transpose(
        3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_tbc(input, weight, bias, pad=0):
    """Convolution of (L, N, C) with weight (K, C, O) and bias (O) → (L_out, N, O)."""
    numbers = ("WNC", "WIO", "WNC")
    output = lax.conv_general_dilated(input, weight, (1,), [(pad, pad)], dimension_numbers=numbers)
    return output + bias
