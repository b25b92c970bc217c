"""Wrappers around modules that split the work among GPUs."""

from __future__ import annotations

from flax import nnx


class DataParallel(nnx.Module):
    """Calls ``module``, as torch's does on one device; jax.sharding spreads the batch over several."""

    def __init__(self, module):
        self.module = module

    def __call__(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
