"""What a program asks about the GPU it runs on."""

from __future__ import annotations

from typing import NamedTuple

import jax


class GpuProperties(NamedTuple):
    """What ``torch.cuda.get_device_properties`` says that JAX knows too."""

    name: str
    major: int
    minor: int


def gpu_properties():
    """Name and compute capability of the first GPU; RuntimeError where there is none."""
    device = jax.devices("gpu")[0]
    major, minor = device.compute_capability.split(".")
    return GpuProperties(device.device_kind, int(major), int(minor))
