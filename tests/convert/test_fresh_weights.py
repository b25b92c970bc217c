"""Parameters that are taken out of layers which nobody keeps."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn

class Head(nn.Module):
    def __init__(self, weight=None):
        super().__init__()
        if weight is None:
            weight = nn.Linear(4, 4, bias=False).weight
        self.weight = weight

    def forward(self, x):
        return F.linear(x, self.weight)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.ws = nn.ParameterList()
        {lines}

    def made(self):
        return nn.Linear(4, 4).weight

    def forward(self, x):
        x = self.l(x)
        if len(self.ws):
            return F.linear(x, self.ws[0])
        return self.head(x) if hasattr(self, "head") else F.linear(x, self.w.view(4, 4))
"""


@pytest.mark.parametrize(
    "lines",
    [
        "self.head = Head()",
        "self.w = nn.Linear(4, 4).weight",
        "self.w = nn.Conv1d(4, 4, 1).weight if True else None",
        "w = nn.Conv1d(4, 4, 1).weight; self.w = w",
        "w = nn.Linear(4, 4).weight; nn.init.zeros_(w); self.w = w",
        "l = nn.Linear(4, 4); nn.init.ones_(l.weight); w = l.weight; self.w = w",
        "self.w = self.made()",
        "self.register_parameter('w', nn.Linear(4, 4).weight)",
        "self.ws.append(nn.Linear(4, 4).weight)",
        "self.ws = nn.ParameterList([nn.Linear(4, 4).weight for _ in range(2)])",
    ],
)
def test_a_weight_that_outlives_its_layer_is_a_parameter(lines: str) -> None:
    check(SOURCE.format(lines=lines))
