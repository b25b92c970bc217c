"""Plain lists of layers whose class is an argument, which other attributes hold as well."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

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
        """self.names, self.layers = [], []
        for k in range(n):
            layer = cls(size, size)
            self.add_module("l%d" % k, layer)
            self.layers.append(layer)""",
        """self.layers = []
        for k in range(n):
            self.layers.append(cls(size, size))
            self.add_module("l%d" % k, self.layers[-1])""",
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


COLLECTED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        lateral, output = [], []
        lateral = []
        for i in range(3):
            one, other = nn.Linear(4, 4), nn.Linear(4, 4)
            self.add_module(f"output_{i}", other)
            if i == 2:
                lateral.append(None)
            else:
                self.add_module(f"lateral_{i}", one)
                lateral.append(one)
        LINES

    def forward(self, x):
        y = x
        for one in self.lateral:
            if one is not None:
                y = one(y) * 2
        return y + self.output_0(x) + self.output_1(x) + self.output_2(x)
""".replace("lateral, output = [], []\n        ", "")
"""The pyramids of detectron2 and of Mask2Former."""


@pytest.mark.parametrize(
    "lines",
    [
        "self.lateral = lateral[::-1]",
        "self.lateral = lateral",
        "self.lateral = list(reversed(lateral))",
        "n = len(lateral)\n        self.lateral = lateral[:n]",
    ],
)
def test_what_a_local_list_collects_is_registered(lines: str) -> None:
    check(COLLECTED.replace("LINES", lines))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('                self.add_module(f"lateral_{i}", one)\n', ""),
        ("lateral.append(one)", "lateral.append(nn.Linear(4, 4))"),
        ("lateral.append(one)", "one = nn.Linear(4, 4)\n                lateral.append(one)"),
        ('f"lateral_{i}"', '"lateral"'),
        ("LINES", "lateral.insert(0, nn.Linear(4, 4))\n        LINES"),
        ("LINES", "lateral += [nn.Linear(4, 4)]\n        LINES"),
        ("LINES", "lateral[0] = nn.Linear(4, 4)\n        LINES"),
        ("LINES", "more = lateral\n        more.append(nn.Linear(4, 4))\n        LINES"),
        ("LINES", "LINES\n        self.lateral.append(nn.Linear(4, 4))"),
        ("lateral = []", "lateral = [nn.Linear(4, 4)]"),
    ],
)
def test_what_nobody_registers_is_told(old: str, new: str) -> None:
    source = COLLECTED.replace(old, new).replace("LINES", "self.lateral = lateral[::-1]")
    assert "API008" in rules_of(source)


HELPED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = 4

        def inner(i):
            unit = nn.Linear(4, 4)
            self.add_module("unit_" + str(i), unit)
            return unit

        self.units = [inner(i) for i in range(3)]

    def method(self, i, size=4):
        unit = nn.Linear(size, size)
        setattr(self, f"unit_{i}", unit)
        return unit

    def forward(self, x):
        return torch.stack([unit(x) for unit in self.units]).sum(0)
"""
"""The units of a capsule."""


@pytest.mark.parametrize("call", ["inner(i)", "self.method(i)", "self.method(i, 4)"])
def test_a_helper_registers_what_it_makes(call: str) -> None:
    check(HELPED.replace("inner(i) for", f"{call} for"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"unit_" + str(i)', '"unit"'),
        ("return unit", "return nn.Linear(4, 4)"),
        ("return unit", "unit = nn.Linear(4, 4)\n            return unit"),
        ("range(3)", "[0, 0, 0]"),
        ("inner(i) for", "inner(0) for"),
        ("self.add_module", "if i > 1:\n                self.add_module"),
    ],
)
def test_a_helper_that_may_leave_one_out_is_told(old: str, new: str) -> None:
    assert "API008" in rules_of(HELPED.replace(old, new, 1))
