"""Pooling layers that are more than a function: dilated and fractional max pooling."""

from __future__ import annotations

from flax import nnx

from rules.compat.pooling import fractional_max_pool, max_pool_with_indices


def dilated_max_pool(rank, input, **options):
    """Max pooling over the last ``rank`` axes with a ``dilation``."""
    return max_pool_with_indices(rank, input, **options)[0]


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
