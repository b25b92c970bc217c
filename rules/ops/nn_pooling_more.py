"""torch.nn.functional, the rarer pools: p-norms, unpooling, fractional windows."""

from __future__ import annotations

from rules.compat.pooling import fractional_max_pool, lp_pool, max_unpool
from rules.registry import op


@op(
    "torch.nn.functional.lp_pool1d",
    example={"F.lp_pool1d(x, 2, 3)": "lp_pool(1, x, 2, 3)"},
)
def f_lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> Tensor["same"]:
    """p-norm of each window."""
    return lp_pool(1, input, norm_type, kernel_size, stride=stride, ceil_mode=ceil_mode)


@op(
    "torch.nn.functional.max_unpool1d",
    example={"F.max_unpool1d(x, i, 2)": "max_unpool(1, x, i, 2)"},
)
def f_max_unpool1d(
    input, indices, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor["same"]:
    """Values put back at the positions they were pooled from, zeros elsewhere."""
    return max_unpool(
        1, input, indices, kernel_size, stride=stride, padding=padding, output_size=output_size
    )


@op(
    "torch.nn.functional.lp_pool2d",
    example={"F.lp_pool2d(x, 2, 3)": "lp_pool(2, x, 2, 3)"},
)
def f_lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> Tensor["same"]:
    """p-norm of each window."""
    return lp_pool(2, input, norm_type, kernel_size, stride=stride, ceil_mode=ceil_mode)


@op(
    "torch.nn.functional.max_unpool2d",
    example={"F.max_unpool2d(x, i, 2)": "max_unpool(2, x, i, 2)"},
)
def f_max_unpool2d(
    input, indices, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor["same"]:
    """Values put back at the positions they were pooled from, zeros elsewhere."""
    return max_unpool(
        2, input, indices, kernel_size, stride=stride, padding=padding, output_size=output_size
    )


@op(
    "torch.nn.functional.lp_pool3d",
    example={"F.lp_pool3d(x, 2, 3)": "lp_pool(3, x, 2, 3)"},
)
def f_lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False) -> Tensor["same"]:
    """p-norm of each window."""
    return lp_pool(3, input, norm_type, kernel_size, stride=stride, ceil_mode=ceil_mode)


@op(
    "torch.nn.functional.max_unpool3d",
    example={"F.max_unpool3d(x, i, 2)": "max_unpool(3, x, i, 2)"},
)
def f_max_unpool3d(
    input, indices, kernel_size, stride=None, padding=0, output_size=None
) -> Tensor["same"]:
    """Values put back at the positions they were pooled from, zeros elsewhere."""
    return max_unpool(
        3, input, indices, kernel_size, stride=stride, padding=padding, output_size=output_size
    )


@op(
    "torch.nn.functional.fractional_max_pool2d",
    example={
        "F.fractional_max_pool2d(x, 2, 5, return_indices=True)": "fractional_max_pool(2, x, 2, 5, None, None, rngs=rngs)"
    },
)
def f_fractional_max_pool2d_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    _random_samples=None,
    *,
    return_indices: Literal[True],
    rngs,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, _random_samples, rngs=rngs
    )


@op(
    "torch.nn.functional.fractional_max_pool2d",
    example={
        "F.fractional_max_pool2d(x, 2, output_size=5)": "fractional_max_pool(2, x, 2, 5, None, None, rngs=rngs)[0]"
    },
)
def f_fractional_max_pool2d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
    *,
    rngs,
) -> Tensor["same"]:
    """Max pooling at pseudo-random window starts."""
    result = fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, _random_samples, rngs=rngs
    )
    return result if return_indices else result[0]


@op(
    "torch.nn.functional.fractional_max_pool2d_with_indices",
    example={
        "F.fractional_max_pool2d_with_indices(x, 2, 5)": "fractional_max_pool(2, x, 2, 5, None, None, rngs=rngs)"
    },
)
def f_fractional_max_pool2d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
    *,
    rngs,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return fractional_max_pool(
        2, input, kernel_size, output_size, output_ratio, _random_samples, rngs=rngs
    )


@op(
    "torch.nn.functional.fractional_max_pool3d",
    example={
        "F.fractional_max_pool3d(x, 2, 5, return_indices=True)": "fractional_max_pool(3, x, 2, 5, None, None, rngs=rngs)"
    },
)
def f_fractional_max_pool3d_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    _random_samples=None,
    *,
    return_indices: Literal[True],
    rngs,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, _random_samples, rngs=rngs
    )


@op(
    "torch.nn.functional.fractional_max_pool3d",
    example={
        "F.fractional_max_pool3d(x, 2, output_size=5)": "fractional_max_pool(3, x, 2, 5, None, None, rngs=rngs)[0]"
    },
)
def f_fractional_max_pool3d(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
    *,
    rngs,
) -> Tensor["same"]:
    """Max pooling at pseudo-random window starts."""
    result = fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, _random_samples, rngs=rngs
    )
    return result if return_indices else result[0]


@op(
    "torch.nn.functional.fractional_max_pool3d_with_indices",
    example={
        "F.fractional_max_pool3d_with_indices(x, 2, 5)": "fractional_max_pool(3, x, 2, 5, None, None, rngs=rngs)"
    },
)
def f_fractional_max_pool3d_with_indices(
    input,
    kernel_size,
    output_size=None,
    output_ratio=None,
    return_indices=False,
    _random_samples=None,
    *,
    rngs,
) -> tuple[Tensor, Tensor["int"]]:
    """Maxima and their flat positions."""
    return fractional_max_pool(
        3, input, kernel_size, output_size, output_ratio, _random_samples, rngs=rngs
    )
