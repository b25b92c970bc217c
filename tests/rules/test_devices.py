"""What is asked about the GPU, against torch where there is one."""

from __future__ import annotations

import jax
import pytest
import torch

from rules.compat.devices import gpu_properties
from rules.ops import devices
from tests.convert.tools import rules_of


def test_the_gpu() -> None:
    if jax.default_backend() != "gpu" or not torch.cuda.is_available():
        with pytest.raises(RuntimeError):
            gpu_properties()
        return
    found, wanted = devices.get_device_properties(), torch.cuda.get_device_properties(0)
    assert found == (wanted.name, wanted.major, wanted.minor)
    assert devices.get_device_capability() == torch.cuda.get_device_capability()


def test_a_gpu_by_number_is_a_finding() -> None:
    source = "def f():\n    return torch.cuda.get_device_properties({}).major\n"
    assert rules_of(source.format(0)) == []
    assert rules_of(source.format(1)) == ["API002"]
