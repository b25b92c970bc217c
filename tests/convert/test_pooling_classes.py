"""Classes that derive from pooling layers, which are plain functions elsewhere in the output."""

from __future__ import annotations

import numpy as np
import torch

from tests.convert.tools import both

SOURCE = """
from typing import List


def pad_same(x, k: List[int], s: List[int], value: float = 0):
    ih, iw = x.size()[-2:]
    ph = max((-(-ih // s[0]) - 1) * s[0] + k[0] - ih, 0)
    pw = max((-(-iw // s[1]) - 1) * s[1] + k[1] - iw, 0)
    return F.pad(x, (pw // 2, pw - pw // 2, ph // 2, ph - ph // 2), value=value)


class MaxPool2dSame(nn.MaxPool2d):
    def __init__(self, kernel_size: int, stride=None, padding=0, dilation=1, ceil_mode=False):
        super().__init__((kernel_size, kernel_size), (stride, stride), (0, 0), dilation, ceil_mode)

    def forward(self, x):
        x = pad_same(x, self.kernel_size, self.stride, value=-float('inf'))
        return F.max_pool2d(x, self.kernel_size, self.stride, (0, 0), self.dilation, self.ceil_mode)


class Avg(nn.AvgPool2d):

    def forward(self, x):
        return super().forward(x) * self.kernel_size


class Plain(nn.MaxPool2d):
    pass


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = MaxPool2dSame(3, 2)
        self.b = Avg(2, count_include_pad=False, padding=1)
        self.c = nn.Sequential(Plain(2, ceil_mode=True))

    def forward(self, x):
        return self.c(self.b(self.a(x)))
"""


def test_a_class_that_derives_from_a_pooling_layer() -> None:
    model, port, code = both(SOURCE)
    x = torch.randn(2, 3, 13, 11)
    np.testing.assert_allclose(port(x.numpy()), model(x).numpy(), rtol=1e-6)
    assert "class Plain(MaxPool2dAsTorch)" in code
    indices = SOURCE.replace("return self.c(self.b(self.a(x)))", "return self.d(x)").replace(
        "self.c = nn.Sequential(",
        "self.d = Plain(2, 1, 1, return_indices=True)\n        self.c = nn.Sequential(",
    )
    model, port, _ = both(indices)
    for mine, theirs in zip(port(x.numpy()), model(x), strict=True):
        np.testing.assert_array_equal(mine, theirs.numpy())
