"""torch.nn.functional, pooling.

``lax.reduce_window`` pools, but knows neither ``ceil_mode`` (which drops windows that start in the right padding) nor
``count_include_pad``, ``divisor_override`` or indices, and cannot differentiate dilated windows.
"""

from __future__ import annotations

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
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_with_indices,
)
from rules.registry import op, surely


@op(
    "torch.nn.functional.max_pool1d",
    example={"F.max_pool1d(x, 2, return_indices=True)": "max_pool_with_indices(1, x, 2)"},
)
def f_max_pool1d_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return max_pool_with_indices(
        1,
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )


@op(
    "torch.nn.functional.max_pool1d_with_indices",
    "torch.max_pool1d_with_indices",
    example={"F.max_pool1d_with_indices(x, 2)": "max_pool_with_indices(1, x, 2)"},
)
def f_max_pool1d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return max_pool_with_indices(
        1,
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )


@op(
    "torch.nn.functional.max_pool1d",
    "torch.max_pool1d",
    example={"F.max_pool1d(x, 2)": "max_pool1d(x, 2)"},
)
def f_max_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
) -> Tensor["same"]:
    """Largest value of each window, the gradient to the first of equal ones."""
    if return_indices or dilation not in (1, (1,) * 1, [1] * 1):
        result = max_pool_with_indices(
            1,
            input,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
        return result if return_indices else result[0]
    if ceil_mode:
        return ceil_max_pool(1, input, kernel_size, stride=stride, padding=padding)
    return max_pool1d(input, kernel_size, stride=stride, padding=padding)


@op(
    "torch.nn.functional.max_pool2d",
    example={"F.max_pool2d(x, 2, return_indices=True)": "max_pool_with_indices(2, x, 2)"},
)
def f_max_pool2d_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return max_pool_with_indices(
        2,
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )


@op(
    "torch.nn.functional.max_pool2d_with_indices",
    example={"F.max_pool2d_with_indices(x, 2)": "max_pool_with_indices(2, x, 2)"},
)
def f_max_pool2d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return max_pool_with_indices(
        2,
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )


@op(
    "torch.nn.functional.max_pool2d",
    "torch.max_pool2d",
    example={"F.max_pool2d(x, 2)": "max_pool2d(x, 2)"},
)
def f_max_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
) -> Tensor["same"]:
    """Largest value of each window, the gradient to the first of equal ones."""
    if return_indices or dilation not in (1, (1,) * 2, [1] * 2):
        result = max_pool_with_indices(
            2,
            input,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
        return result if return_indices else result[0]
    if ceil_mode:
        return ceil_max_pool(2, input, kernel_size, stride=stride, padding=padding)
    return max_pool2d(input, kernel_size, stride=stride, padding=padding)


@op(
    "torch.nn.functional.max_pool3d",
    example={"F.max_pool3d(x, 2, return_indices=True)": "max_pool_with_indices(3, x, 2)"},
)
def f_max_pool3d_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return max_pool_with_indices(
        3,
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )


@op(
    "torch.nn.functional.max_pool3d_with_indices",
    example={"F.max_pool3d_with_indices(x, 2)": "max_pool_with_indices(3, x, 2)"},
)
def f_max_pool3d_with_indices(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return max_pool_with_indices(
        3,
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )


@op(
    "torch.nn.functional.max_pool3d",
    "torch.max_pool3d",
    example={"F.max_pool3d(x, 2)": "max_pool3d(x, 2)"},
)
def f_max_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    dilation=1,
    ceil_mode=False,
    return_indices=False,
) -> Tensor["same"]:
    """Largest value of each window, the gradient to the first of equal ones."""
    if return_indices or dilation not in (1, (1,) * 3, [1] * 3):
        result = max_pool_with_indices(
            3,
            input,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
        )
        return result if return_indices else result[0]
    if ceil_mode:
        return ceil_max_pool(3, input, kernel_size, stride=stride, padding=padding)
    return max_pool3d(input, kernel_size, stride=stride, padding=padding)


@op(
    "torch.nn.functional.avg_pool1d",
    "torch.avg_pool1d",
    example={"F.avg_pool1d(x, 2)": "avg_pool1d(x, 2)"},
)
def f_avg_pool1d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
) -> Tensor["same"]:
    """Mean of each window."""
    return avg_pool1d(
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
    )


@op(
    "torch.nn.functional.avg_pool2d",
    example={"F.avg_pool2d(x, 2)": "avg_pool2d(x, 2)"},
)
def f_avg_pool2d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
) -> Tensor["same"]:
    """Mean of each window."""
    return avg_pool2d(
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


@op(
    "torch.nn.functional.avg_pool3d",
    example={"F.avg_pool3d(x, 2)": "avg_pool3d(x, 2)"},
)
def f_avg_pool3d(
    input,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
) -> Tensor["same"]:
    """Mean of each window."""
    return avg_pool3d(
        input,
        kernel_size,
        stride=stride,
        padding=padding,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        divisor_override=divisor_override,
    )


@op(
    "torch.nn.functional.adaptive_avg_pool1d",
    "torch.adaptive_avg_pool1d",
    example={
        "F.adaptive_avg_pool1d(x, 1)": "jnp.mean(x, axis=-1, keepdims=True)",
        "F.adaptive_avg_pool1d(x, 7)": "adaptive_avg_pool1d(x, 7)",
    },
)
def f_adaptive_avg_pool1d(input, output_size) -> Tensor["same"]:
    """Mean of the windows that cover the axes evenly; they overlap where sizes do not divide."""
    if surely(output_size in (1, (1,) * 1, [1] * 1)):
        return jnp.mean(input, axis=-1, keepdims=True)
    return adaptive_avg_pool1d(input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool1d",
    example={
        "F.adaptive_max_pool1d(x, 3, return_indices=True)": "adaptive_max_pool_with_indices(1, x, 3)"
    },
)
def f_adaptive_max_pool1d_indices(
    input, output_size, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima of the windows that cover the axes evenly, and their flat positions."""
    return adaptive_max_pool_with_indices(1, input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool1d",
    example={"F.adaptive_max_pool1d(x, 7)": "adaptive_max_pool1d(x, 7)"},
)
def f_adaptive_max_pool1d(input, output_size, return_indices=False) -> Tensor["same"]:
    """Maxima of the windows that cover the axes evenly."""
    if return_indices:
        return adaptive_max_pool_with_indices(1, input, output_size)
    return adaptive_max_pool1d(input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool1d_with_indices",
    "torch.adaptive_max_pool1d",
    example={"F.adaptive_max_pool1d_with_indices(x, 3)": "adaptive_max_pool_with_indices(1, x, 3)"},
)
def f_adaptive_max_pool1d_with_indices(
    input, output_size, return_indices=False
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima of the windows that cover the axes evenly, and their flat positions."""
    return adaptive_max_pool_with_indices(1, input, output_size)


@op(
    "torch.nn.functional.adaptive_avg_pool2d",
    example={
        "F.adaptive_avg_pool2d(x, 1)": "jnp.mean(x, axis=(-2, -1), keepdims=True)",
        "F.adaptive_avg_pool2d(x, 7)": "adaptive_avg_pool2d(x, 7)",
    },
)
def f_adaptive_avg_pool2d(input, output_size) -> Tensor["same"]:
    """Mean of the windows that cover the axes evenly; they overlap where sizes do not divide."""
    if surely(output_size in (1, (1,) * 2, [1] * 2)):
        return jnp.mean(input, axis=(-2, -1), keepdims=True)
    return adaptive_avg_pool2d(input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool2d",
    example={
        "F.adaptive_max_pool2d(x, 3, return_indices=True)": "adaptive_max_pool_with_indices(2, x, 3)"
    },
)
def f_adaptive_max_pool2d_indices(
    input, output_size, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima of the windows that cover the axes evenly, and their flat positions."""
    return adaptive_max_pool_with_indices(2, input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool2d",
    example={"F.adaptive_max_pool2d(x, 7)": "adaptive_max_pool2d(x, 7)"},
)
def f_adaptive_max_pool2d(input, output_size, return_indices=False) -> Tensor["same"]:
    """Maxima of the windows that cover the axes evenly."""
    if return_indices:
        return adaptive_max_pool_with_indices(2, input, output_size)
    return adaptive_max_pool2d(input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool2d_with_indices",
    example={"F.adaptive_max_pool2d_with_indices(x, 3)": "adaptive_max_pool_with_indices(2, x, 3)"},
)
def f_adaptive_max_pool2d_with_indices(
    input, output_size, return_indices=False
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima of the windows that cover the axes evenly, and their flat positions."""
    return adaptive_max_pool_with_indices(2, input, output_size)


@op(
    "torch.nn.functional.adaptive_avg_pool3d",
    example={
        "F.adaptive_avg_pool3d(x, 1)": "jnp.mean(x, axis=(-3, -2, -1), keepdims=True)",
        "F.adaptive_avg_pool3d(x, 7)": "adaptive_avg_pool3d(x, 7)",
    },
)
def f_adaptive_avg_pool3d(input, output_size) -> Tensor["same"]:
    """Mean of the windows that cover the axes evenly; they overlap where sizes do not divide."""
    if surely(output_size in (1, (1,) * 3, [1] * 3)):
        return jnp.mean(input, axis=(-3, -2, -1), keepdims=True)
    return adaptive_avg_pool3d(input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool3d",
    example={
        "F.adaptive_max_pool3d(x, 3, return_indices=True)": "adaptive_max_pool_with_indices(3, x, 3)"
    },
)
def f_adaptive_max_pool3d_indices(
    input, output_size, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima of the windows that cover the axes evenly, and their flat positions."""
    return adaptive_max_pool_with_indices(3, input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool3d",
    example={"F.adaptive_max_pool3d(x, 7)": "adaptive_max_pool3d(x, 7)"},
)
def f_adaptive_max_pool3d(input, output_size, return_indices=False) -> Tensor["same"]:
    """Maxima of the windows that cover the axes evenly."""
    if return_indices:
        return adaptive_max_pool_with_indices(3, input, output_size)
    return adaptive_max_pool3d(input, output_size)


@op(
    "torch.nn.functional.adaptive_max_pool3d_with_indices",
    example={"F.adaptive_max_pool3d_with_indices(x, 3)": "adaptive_max_pool_with_indices(3, x, 3)"},
)
def f_adaptive_max_pool3d_with_indices(
    input, output_size, return_indices=False
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima of the windows that cover the axes evenly, and their flat positions."""
    return adaptive_max_pool_with_indices(3, input, output_size)
