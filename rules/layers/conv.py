"""Convolutions: torch.nn.Conv1d … Conv3d and their transposes, eager and lazy."""

from __future__ import annotations

from rules.compat.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    LazyConv1d,
    LazyConv2d,
    LazyConv3d,
    LazyConvTranspose1d,
    LazyConvTranspose2d,
    LazyConvTranspose3d,
    PaddedConv1d,
    PaddedConv2d,
    PaddedConv3d,
)
from rules.registry import layer, unsupported


@layer("torch.nn.Conv1d")
def conv1d_layer(
    in_channels,
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=True,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> Conv1d:
    """Channels first, weight (out, in / groups, *kernel); other padding modes pad the input first."""
    if padding_mode != "zeros":
        return PaddedConv1d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            dtype=dtype,
            rngs=rngs,
        )
    return Conv1d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer(
    "torch.nn.Conv2d",
    example={
        "nn.Conv2d(3, 8, 3, 2, padding=1, bias=False)": "Conv2d(3, 8, 3, stride=2, padding=1, bias=False, rngs=rngs)"
    },
)
def conv2d_layer(
    in_channels,
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=True,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> Conv2d:
    """Channels first, weight (out, in / groups, *kernel); other padding modes pad the input first."""
    if padding_mode != "zeros":
        return PaddedConv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            dtype=dtype,
            rngs=rngs,
        )
    return Conv2d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.Conv3d")
def conv3d_layer(
    in_channels,
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=True,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> Conv3d:
    """Channels first, weight (out, in / groups, *kernel); other padding modes pad the input first."""
    if padding_mode != "zeros":
        return PaddedConv3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            dtype=dtype,
            rngs=rngs,
        )
    return Conv3d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.ConvTranspose1d")
def conv_transpose1d_layer(
    in_channels,
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    output_padding=0,
    groups=1,
    bias=True,
    dilation=1,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> ConvTranspose1d:
    """The gradient of a convolution; weight (in, out / groups, *kernel)."""
    return ConvTranspose1d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        bias=bias,
        dilation=dilation,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.ConvTranspose2d")
def conv_transpose2d_layer(
    in_channels,
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    output_padding=0,
    groups=1,
    bias=True,
    dilation=1,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> ConvTranspose2d:
    """The gradient of a convolution; weight (in, out / groups, *kernel)."""
    return ConvTranspose2d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        bias=bias,
        dilation=dilation,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.ConvTranspose3d")
def conv_transpose3d_layer(
    in_channels,
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    output_padding=0,
    groups=1,
    bias=True,
    dilation=1,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> ConvTranspose3d:
    """The gradient of a convolution; weight (in, out / groups, *kernel)."""
    return ConvTranspose3d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        bias=bias,
        dilation=dilation,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyConv1d")
def lazy_conv1d_layer(
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=True,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> LazyConv1d:
    """Built on the first call, from the channels of its input."""
    if padding_mode != "zeros":
        unsupported("a lazy convolution with padding_mode: give in_channels to Conv1d")
    return LazyConv1d(
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyConv2d")
def lazy_conv2d_layer(
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=True,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> LazyConv2d:
    """Built on the first call, from the channels of its input."""
    if padding_mode != "zeros":
        unsupported("a lazy convolution with padding_mode: give in_channels to Conv2d")
    return LazyConv2d(
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyConv3d")
def lazy_conv3d_layer(
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    bias=True,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> LazyConv3d:
    """Built on the first call, from the channels of its input."""
    if padding_mode != "zeros":
        unsupported("a lazy convolution with padding_mode: give in_channels to Conv3d")
    return LazyConv3d(
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=bias,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyConvTranspose1d")
def lazy_conv_transpose1d_layer(
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    output_padding=0,
    groups=1,
    bias=True,
    dilation=1,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> LazyConvTranspose1d:
    """Built on the first call, from the channels of its input."""
    return LazyConvTranspose1d(
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        bias=bias,
        dilation=dilation,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyConvTranspose2d")
def lazy_conv_transpose2d_layer(
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    output_padding=0,
    groups=1,
    bias=True,
    dilation=1,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> LazyConvTranspose2d:
    """Built on the first call, from the channels of its input."""
    return LazyConvTranspose2d(
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        bias=bias,
        dilation=dilation,
        dtype=dtype,
        rngs=rngs,
    )


@layer("torch.nn.LazyConvTranspose3d")
def lazy_conv_transpose3d_layer(
    out_channels,
    kernel_size,
    stride=1,
    padding=0,
    output_padding=0,
    groups=1,
    bias=True,
    dilation=1,
    padding_mode="zeros",
    device=None,
    dtype=None,
    *,
    rngs,
) -> LazyConvTranspose3d:
    """Built on the first call, from the channels of its input."""
    return LazyConvTranspose3d(
        out_channels,
        kernel_size,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        bias=bias,
        dilation=dilation,
        dtype=dtype,
        rngs=rngs,
    )
