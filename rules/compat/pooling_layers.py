"""Pooling layers that are more than a function: dilated and fractional max pooling."""

from __future__ import annotations

from flax import nnx

from rules.compat.pooling import avg_pool2d, fractional_max_pool, max_pool_with_indices


def dilated_max_pool(rank, input, **options):
    """Max pooling over the last ``rank`` axes with a ``dilation``."""
    return max_pool_with_indices(rank, input, **options)[0]


class MaxPool2dAsTorch(nnx.Module):
    """``MaxPool2d`` with torch's arguments and attributes, for classes that derive from it."""

    rank = 2

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        return_indices=False,
        ceil_mode=False,
        *,
        rngs=None,
    ):
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def __call__(self, input):
        windows = {"kernel_size": self.kernel_size, "stride": self.stride}
        options = {"padding": self.padding, "dilation": self.dilation, "ceil_mode": self.ceil_mode}
        values, indices = max_pool_with_indices(self.rank, input, **windows, **options)
        return (values, indices) if self.return_indices else values


class MaxPool1dAsTorch(MaxPool2dAsTorch):
    """``MaxPool1d``."""

    rank = 1


class MaxPool3dAsTorch(MaxPool2dAsTorch):
    """``MaxPool3d``."""

    rank = 3


class AvgPool2dAsTorch(nnx.Module):
    """``AvgPool2d`` with torch's arguments and attributes, for classes that derive from it."""

    def __init__(
        self,
        kernel_size,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
        *,
        rngs=None,
    ):
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def __call__(self, input):
        windows = {"kernel_size": self.kernel_size, "stride": self.stride, "padding": self.padding}
        counted = {"count_include_pad": self.count_include_pad, "ceil_mode": self.ceil_mode}
        return avg_pool2d(input, **windows, **counted, divisor_override=self.divisor_override)


class FractionalMaxPool(nnx.Module):
    """Max pooling of (N, C, *spatial), N optional, at window starts drawn anew on each call."""

    def __init__(
        self,
        rank,
        kernel_size,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        samples=None,
        *,
        rngs: nnx.Rngs,
    ):
        self.rank, self.kernel_size, self.return_indices = rank, kernel_size, return_indices
        self.output_size, self.output_ratio = output_size, output_ratio
        self._random_samples = None if samples is None else nnx.data(nnx.Variable(samples))
        self.rngs = rngs.default.fork()

    def __call__(self, input):
        samples = self._random_samples
        batched = input.ndim == self.rank + 2
        planes = input if batched else input[None]
        values, indices = fractional_max_pool(
            self.rank,
            planes,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            None if samples is None else samples[: len(planes)],
            rngs=self.rngs,
        )
        if not batched:
            values, indices = values[0], indices[0]
        return (values, indices) if self.return_indices else values
