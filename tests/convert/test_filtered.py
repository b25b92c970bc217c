"""A comprehension's ``if`` tells what the values are that it lets through."""

from __future__ import annotations

import jax
import numpy as np
import torch

from tests.convert.tools import loaded

SOURCE = """
from typing import Any, List, Optional

import torch


def place(values: List[Optional[Any]]):
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return tensors[0].device, tensors[0].dtype


def rows(values: List[Optional[Any]]):
    found = [value for value in values if value is not None and isinstance(value, torch.Tensor)]
    device, dtype = place(found)
    return found[0].view(found[0].size(0), -1).sum(1) + torch.zeros(1, device=device, dtype=dtype)
"""


def test_what_is_let_through_is_a_tensor_also_under_jit() -> None:
    theirs, ours, _ = loaded(SOURCE)
    x = torch.randn(3, 2, 2)
    found = jax.jit(lambda value: ours["rows"]([None, value]))(x.numpy())
    np.testing.assert_allclose(found, theirs["rows"]([None, x]), rtol=1e-5, atol=1e-6)
