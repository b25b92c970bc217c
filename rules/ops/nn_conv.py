"""torch.nn.functional, convolutions, in torch's layouts: (N, C, …) and (O, I/groups, …)."""

from __future__ import annotations

from rules.compat.conv_functional import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from rules.registry import op


@op(
    "torch.nn.functional.conv1d",
    "torch.conv1d",
    example={"F.conv1d(x, y, padding=1)": "conv1d(x, y, padding=1)"},
)
def f_conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Tensor["same"]:
    """Correlation over the last 1 axis; ``padding`` may be "same" or "valid"."""
    return conv1d(
        input, weight, bias=bias, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@op(
    "torch.nn.functional.conv2d",
    "torch.conv2d",
    example={"F.conv2d(x, y, padding=1)": "conv2d(x, y, padding=1)"},
)
def f_conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Tensor["same"]:
    """Correlation over the last 2 axes; ``padding`` may be "same" or "valid"."""
    return conv2d(
        input, weight, bias=bias, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@op(
    "torch.nn.functional.conv3d",
    "torch.conv3d",
    example={"F.conv3d(x, y, padding=1)": "conv3d(x, y, padding=1)"},
)
def f_conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1) -> Tensor["same"]:
    """Correlation over the last 3 axes; ``padding`` may be "same" or "valid"."""
    return conv3d(
        input, weight, bias=bias, stride=stride, padding=padding, dilation=dilation, groups=groups
    )


@op(
    "torch.nn.functional.conv_transpose1d",
    "torch.conv_transpose1d",
    example={"F.conv_transpose1d(x, y, stride=2)": "conv_transpose1d(x, y, stride=2)"},
)
def f_conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
) -> Tensor["same"]:
    """The transpose of conv1d; weight (C, O/groups, …)."""
    return conv_transpose1d(
        input,
        weight,
        bias=bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


@op(
    "torch.nn.functional.conv_transpose2d",
    "torch.conv_transpose2d",
    example={"F.conv_transpose2d(x, y, stride=2)": "conv_transpose2d(x, y, stride=2)"},
)
def f_conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
) -> Tensor["same"]:
    """The transpose of conv2d; weight (C, O/groups, …)."""
    return conv_transpose2d(
        input,
        weight,
        bias=bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


@op(
    "torch.nn.functional.conv_transpose3d",
    "torch.conv_transpose3d",
    example={"F.conv_transpose3d(x, y, stride=2)": "conv_transpose3d(x, y, stride=2)"},
)
def f_conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
) -> Tensor["same"]:
    """The transpose of conv3d; weight (C, O/groups, …)."""
    return conv_transpose3d(
        input,
        weight,
        bias=bias,
        stride=stride,
        padding=padding,
        output_padding=output_padding,
        groups=groups,
        dilation=dilation,
    )


@op(
    "torch.conv_tbc",
    "torch.nn.functional.conv_tbc",
    example={"F.conv_tbc(x, y, z)": "conv_tbc(x, y, z)"},
)
def f_conv_tbc(input, weight, bias, pad=0) -> Tensor["same"]:
    """Convolution of (time, batch, channels) with weight (K, C, O)."""
    return conv_tbc(input, weight, bias, pad=pad)
