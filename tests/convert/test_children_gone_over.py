"""``for block in self.children(): for m in block``: the layers of a child that only a run tells to be a Sequential."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

NET = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.b = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
        self.count = 0
{lines}

    def forward(self, x):
        for m in self.b:
            x = m(x)
        return self.a(x) * self.count


def init(m):
    if isinstance(m, nn.Linear):
        nn.init.ones_(m.weight)
"""


@pytest.mark.parametrize(
    "lines",
    [
        "for name in self._modules:\n    for m in self._modules[name]:\n        init(m)\n        self.count += 1",
        "for block in self._modules.values():\n    self.count += len(block)",
        "for block in self.children():\n    for m in block:\n        init(m)\n    self.count += len(list(block))",
        "for name, block in self.named_children():\n    self.count += sum(i for i, m in enumerate(block))",
        "for block in self.children():\n    [init(m) for m in block]\n    self.count += len(block)",
        "for name in self._modules:\n    block = self._modules[name]\n    for m in block:\n        self.count += 1",
    ],
)
def test_each_layer_is_met(lines: str) -> None:
    check(NET.format(lines="\n".join(" " * 8 + line for line in lines.splitlines())))
