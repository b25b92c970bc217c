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


MADE = """
import torch
from torch import nn

def layers(sizes):
    made = nn.ModuleList()
    for k in sizes:
        made.append(nn.Sequential(nn.Linear(k, k), nn.ReLU()))
    return len(sizes), made

def named(sizes):
    made = nn.ModuleList()
    for i, k in enumerate(sizes):
        one = nn.Sequential()
        if i:
            one.add_module(f"linear_{i}", nn.Linear(k, k))
        else:
            one.add_module(f"first_{i}", nn.Linear(k, k))
        made.append(one)
    return made

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.layers = layers([4, 4])
        self.named = named([4, 4])

    def forward(self, x):
        for layer in self.layers:
            x = layer[0](x)
        for layer in self.named:
            x = layer[0](x) * len(layer)
        return x + self.n
"""


def test_sequentials_that_a_function_makes() -> None:
    check(MADE)
