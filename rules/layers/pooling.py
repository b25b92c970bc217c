"""Pooling: a ``functools.partial`` of the function stands for the layer."""

from __future__ import annotations

import functools

import jax.numpy as jnp

from rules.compat.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    adaptive_max_pool_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    ceil_max_pool,
    lp_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_with_indices,
    max_unpool,
)
from rules.compat.pooling_layers import FractionalMaxPool, dilated_max_pool
from rules.registry import layer


@layer("torch.nn.MaxPool1d")
def MaxPool1d(
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    return_indices=False,
    ceil_mode=False,
    *,
    rngs=None,
) -> Callable:
    """Largest value of each window, and its flat position on request."""
    if return_indices:
        return functools.partial(
            max_pool_with_indices,
            1,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
    if dilation not in (1, (1,) * 1, [1] * 1):
        return functools.partial(
            dilated_max_pool,
            1,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
    if ceil_mode:
        return functools.partial(
            ceil_max_pool, 1, kernel_size=kernel_size, stride=stride, padding=padding
        )
    return functools.partial(max_pool1d, kernel_size=kernel_size, stride=stride, padding=padding)


@layer(
    "torch.nn.MaxPool2d",
    example={"nn.MaxPool2d(2)": "functools.partial(max_pool2d, kernel_size=2)"},
)
def MaxPool2d(
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    return_indices=False,
    ceil_mode=False,
    *,
    rngs=None,
) -> Callable:
    """Largest value of each window, and its flat position on request."""
    if return_indices:
        return functools.partial(
            max_pool_with_indices,
            2,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
    if dilation not in (1, (1,) * 2, [1] * 2):
        return functools.partial(
            dilated_max_pool,
            2,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
    if ceil_mode:
        return functools.partial(
            ceil_max_pool, 2, kernel_size=kernel_size, stride=stride, padding=padding
        )
    return functools.partial(max_pool2d, kernel_size=kernel_size, stride=stride, padding=padding)


@layer("torch.nn.MaxPool3d")
def MaxPool3d(
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    return_indices=False,
    ceil_mode=False,
    *,
    rngs=None,
) -> Callable:
    """Largest value of each window, and its flat position on request."""
    if return_indices:
        return functools.partial(
            max_pool_with_indices,
            3,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
    if dilation not in (1, (1,) * 3, [1] * 3):
        return functools.partial(
            dilated_max_pool,
            3,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
    if ceil_mode:
        return functools.partial(
            ceil_max_pool, 3, kernel_size=kernel_size, stride=stride, padding=padding
        )
    return functools.partial(max_pool3d, kernel_size=kernel_size, stride=stride, padding=padding)


@layer("torch.nn.AvgPool1d")
def AvgPool1d(
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    *,
    rngs=None,
) -> Callable:
    """Mean of each window."""
    return functools.partial(
        avg_pool1d,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )


@layer("torch.nn.AvgPool2d")
def AvgPool2d(
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    rngs=None,
) -> Callable:
    """Mean of each window."""
    return functools.partial(
        avg_pool2d,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


@layer("torch.nn.AvgPool3d")
def AvgPool3d(
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
    *,
    rngs=None,
) -> Callable:
    """Mean of each window."""
    return functools.partial(
        avg_pool3d,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


@layer("torch.nn.AdaptiveAvgPool1d")
def AdaptiveAvgPool1d(output_size, *, rngs=None) -> Callable:
    """Mean of the windows that cover the axes evenly."""
    if output_size in (1, (1,), [1]):
        return functools.partial(jnp.mean, axis=-1, keepdims=True)
    return functools.partial(adaptive_avg_pool1d, output_size=output_size)


@layer("torch.nn.AdaptiveMaxPool1d")
def AdaptiveMaxPool1d(output_size, return_indices=False, *, rngs=None) -> Callable:
    """Largest value of the windows that cover the axes evenly, and its flat position on request."""
    if return_indices:
        return functools.partial(adaptive_max_pool_with_indices, 1, output_size=output_size)
    return functools.partial(adaptive_max_pool1d, output_size=output_size)


@layer("torch.nn.LPPool1d")
def LPPool1d(norm_type, kernel_size, stride=None, ceil_mode=False, *, rngs=None) -> Callable:
    """(Σ x^p)^(1/p) of each window."""
    return functools.partial(
        lp_pool,
        1,
        norm_type=norm_type,
        kernel_size=kernel_size,
        stride=stride,
        ceil_mode=ceil_mode,
    )


@layer("torch.nn.MaxUnpool1d")
def MaxUnpool1d(kernel_size, stride=None, padding=0, *, rngs=None) -> Callable:
    """Values back at the positions that max pooling returned, zeros elsewhere."""
    return functools.partial(max_unpool, 1, kernel_size=kernel_size, stride=stride, padding=padding)


@layer(
    "torch.nn.AdaptiveAvgPool2d",
    example={
        "nn.AdaptiveAvgPool2d((1, 1))": "functools.partial(jnp.mean, axis=(-2, -1), keepdims=True)",
        "nn.AdaptiveAvgPool2d(7)": "functools.partial(adaptive_avg_pool2d, output_size=7)",
    },
)
def AdaptiveAvgPool2d(output_size, *, rngs=None) -> Callable:
    """Mean of the windows that cover the axes evenly."""
    if output_size in (1, (1, 1), [1, 1]):
        return functools.partial(jnp.mean, axis=(-2, -1), keepdims=True)
    return functools.partial(adaptive_avg_pool2d, output_size=output_size)


@layer("torch.nn.AdaptiveMaxPool2d")
def AdaptiveMaxPool2d(output_size, return_indices=False, *, rngs=None) -> Callable:
    """Largest value of the windows that cover the axes evenly, and its flat position on request."""
    if return_indices:
        return functools.partial(adaptive_max_pool_with_indices, 2, output_size=output_size)
    return functools.partial(adaptive_max_pool2d, output_size=output_size)


@layer("torch.nn.LPPool2d")
def LPPool2d(norm_type, kernel_size, stride=None, ceil_mode=False, *, rngs=None) -> Callable:
    """(Σ x^p)^(1/p) of each window."""
    return functools.partial(
        lp_pool,
        2,
        norm_type=norm_type,
        kernel_size=kernel_size,
        stride=stride,
        ceil_mode=ceil_mode,
    )


@layer("torch.nn.MaxUnpool2d")
def MaxUnpool2d(kernel_size, stride=None, padding=0, *, rngs=None) -> Callable:
    """Values back at the positions that max pooling returned, zeros elsewhere."""
    return functools.partial(max_unpool, 2, kernel_size=kernel_size, stride=stride, padding=padding)


@layer("torch.nn.AdaptiveAvgPool3d")
def AdaptiveAvgPool3d(output_size, *, rngs=None) -> Callable:
    """Mean of the windows that cover the axes evenly."""
    if output_size in (1, (1, 1, 1), [1, 1, 1]):
        return functools.partial(jnp.mean, axis=(-3, -2, -1), keepdims=True)
    return functools.partial(adaptive_avg_pool3d, output_size=output_size)


@layer("torch.nn.AdaptiveMaxPool3d")
def AdaptiveMaxPool3d(output_size, return_indices=False, *, rngs=None) -> Callable:
    """Largest value of the windows that cover the axes evenly, and its flat position on request."""
    if return_indices:
        return functools.partial(adaptive_max_pool_with_indices, 3, output_size=output_size)
    return functools.partial(adaptive_max_pool3d, output_size=output_size)


@layer("torch.nn.LPPool3d")
def LPPool3d(norm_type, kernel_size, stride=None, ceil_mode=False, *, rngs=None) -> Callable:
    """(Σ x^p)^(1/p) of each window."""
    return functools.partial(
        lp_pool,
        3,
        norm_type=norm_type,
        kernel_size=kernel_size,
        stride=stride,
        ceil_mode=ceil_mode,
    )


@layer("torch.nn.MaxUnpool3d")
def MaxUnpool3d(kernel_size, stride=None, padding=0, *, rngs=None) -> Callable:
    """Values back at the positions that max pooling returned, zeros elsewhere."""
    return functools.partial(max_unpool, 3, kernel_size=kernel_size, stride=stride, padding=padding)


@layer("torch.nn.FractionalMaxPool2d")
def fractional_max_pool2d_layer(
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
    *,
    rngs,
) -> FractionalMaxPool:
    """Window starts are drawn on each call, in evaluation too."""
    return FractionalMaxPool(
        2,
        kernel_size,
        output_size=output_size,
        output_ratio=output_ratio,
        return_indices=return_indices,
        samples=_random_samples,
        rngs=rngs,
    )


@layer("torch.nn.FractionalMaxPool3d")
def fractional_max_pool3d_layer(
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
    *,
    rngs,
) -> FractionalMaxPool:
    """Window starts are drawn on each call, in evaluation too."""
    return FractionalMaxPool(
        3,
        kernel_size,
        output_size=output_size,
        output_ratio=output_ratio,
        return_indices=return_indices,
        samples=_random_samples,
        rngs=rngs,
    )
