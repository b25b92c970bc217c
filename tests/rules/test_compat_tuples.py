"""``torch.nn.modules.utils`` beside torch's own, and in models that are built with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.modules import utils

from rules.compat.tuples import ntuple, reverse_repeat_tuple
from tests.convert.tools import both


@pytest.mark.parametrize("value", [3, (1, 2), [4, 5], 1.5, (), (7,)])
def test_as_torchs(value: object) -> None:
    assert ntuple(value, 1) == utils._single(value)
    assert ntuple(value, 2) == utils._pair(value)
    assert ntuple(value, 3) == utils._triple(value)
    if isinstance(value, (tuple, list)):
        assert reverse_repeat_tuple(value, 2) == utils._reverse_repeat_tuple(value, 2)


def test_a_default_of_one_number_says_nothing_of_what_is_handed() -> None:
    source = """
from torch.nn.modules.utils import _ntuple, _pair, _reverse_repeat_tuple

to_two = _ntuple(2)


class Conv(nn.Module):
    def __init__(self, i, o, kernel_size, stride=1):
        super().__init__()
        self.kernel_size, self.stride = _pair(kernel_size), to_two(stride)
        self.pad = _reverse_repeat_tuple([k // 2 for k in self.kernel_size], 2)
        self.weight = nn.Parameter(torch.ones(o, i, *self.kernel_size))

    def forward(self, x):
        return F.conv2d(F.pad(x, self.pad), self.weight, stride=self.stride)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Conv(2, 3, (3, 5), (2, 1))
        self.b = Conv(3, 2, 3)

    def forward(self, x):
        return self.b(self.a(x))
"""
    model, port, _ = both(source)
    x = torch.randn(2, 2, 8, 9)
    np.testing.assert_allclose(port(x.numpy()), model(x).detach().numpy(), rtol=1e-5, atol=1e-5)
