"""The constructors of old tensors: of a size, in all the ways there are to come by one, or of values."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
import torch
from torch import nn

def zeros(like, size: torch.Size):
    return like.new(size).zero_()

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        y = self.l(x)
        {line}
        return y * (r.sum() + 1) * r.numel() * r.dim()
"""


@pytest.mark.parametrize(
    "line",
    [
        "r = x.new(y.size()).zero_()",
        "r = y.data.new(y.shape).fill_(2)",
        "r = x.new(x.size()[:1]).zero_()",
        "r = x.new(x.size() + (2,)).zero_()",
        "t = x.size()[:1] + (3,); r = x.new(t).zero_()",
        "t = (2,) + x.size(); r = torch.Tensor(t).zero_()",
        "t = x.shape; t += (2,); r = torch.FloatTensor(t).zero_()",
        "t = torch.Size([2, 3]); r = x.long().new(t).zero_()",
        "r = zeros(x, y.size())",
        "r = x.new([1.0, 2.0])",
        "r = x.new((2, 3))",
        "n = x.size(0); r = x.new(n).zero_()",
        "r = torch.DoubleTensor(3, 2).fill_(0.5).float()",
        "r = torch.DoubleTensor([[1.0, 2.0]] * 2); r[0] = 3; r = r.float()",
        "r = torch.DoubleTensor().float()",
        "r = torch.cuda.DoubleTensor(2).zero_().float() if x.is_cuda else x.new([2.0])",
    ],
)
def test_a_constructor_of_old(line: str) -> None:
    check(SOURCE.format(line=line))
