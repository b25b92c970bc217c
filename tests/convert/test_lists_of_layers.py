"""Plain lists of layers whose class is an argument, which other attributes hold as well."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
import torch
from torch import nn

class Layers(nn.Module):
    def __init__(self, size, cls, n):
        super().__init__()
        {lines}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = Layers(4, nn.Linear, 2)

    def forward(self, x):
        return self.l(x)
"""


@pytest.mark.parametrize(
    "lines",
    [
        """self.layers = []
        for k in range(n):
            self.layers.append(cls(size, size))
        self.params = nn.ModuleList(self.layers)""",
        """self.layers = []
        for k in range(n):
            layer = cls(size, size)
            self.add_module("l%d" % k, layer)
            self.layers.append(layer)""",
        """self.layers = [cls(size, size) for _ in range(n)]
        self.params = nn.ModuleList(self.layers)""",
        """self.layers = []
        for k in range(n):
            self.layers.append(cls(size, size))
        self.net = nn.Sequential(*self.layers)""",
    ],
)
def test_what_is_registered_elsewhere(lines: str) -> None:
    check(SOURCE.format(lines=lines))
