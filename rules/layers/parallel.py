"""Wrappers around modules that split the work among GPUs."""

from __future__ import annotations

from rules.compat.parallel import DataParallel
from rules.registry import layer


@layer("torch.nn.DataParallel", example={"nn.DataParallel(nn.Tanh())": "DataParallel(jax.nn.tanh)"})
def data_parallel(module, device_ids=None, output_device=None, dim=0) -> DataParallel:
    """The module, whose parameters have ``module.`` before their names."""
    return DataParallel(module)
