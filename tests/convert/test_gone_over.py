"""Sequentials handed to what goes over them: ``def run(layers, x): for layer in layers: …`` takes lists of layers as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.convert.tools import check
from tests.migrator.test_package_modules import compare
from tests.migrator.test_packages import blocking, convert

FUNCTIONS = """
def run(layers, x):
    for layer in layers:
        x = layer(x)
    return x


def first(layers, x):
    return layers[0](x)


def count(layers, x):
    return x * len(layers)


def zipped(layers, x):
    return sum(layer(y) for layer, y in zip(layers, [x, x * 2]))


def spread(layers, x):
    return run([*layers, *layers], x)


def told(layers, x):
    if isinstance(layers, nn.Sequential):
        layers = list(layers.children())
    return layers[1](x)
"""
NET = """
class Stack(nn.Sequential):
    def __init__(self, n=2):
        super().__init__(*[nn.Linear(4, 4) for _ in range(n)])


class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.listed = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.stack = Stack()

    def forward(self, x):
        return self.layers(x) + {line}
"""
NAMES = ["run", "first", "count", "zipped", "spread", "told"]


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_the_file(name: str) -> None:
    both = f"{name}(self.layers, x) + {name}(self.listed, x) + {name}(self.stack, x)"
    check(FUNCTIONS + NET.format(name="M", line=both))


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_another_file(tmp_path: Path, name: str) -> None:
    both = f"{name}(self.layers, x) + {name}(self.listed, x) + {name}(self.stack, x)"
    net = f"from torch import nn\n\nfrom .tools import {name}\n" + NET.format(name="Net", line=both)
    compare(tmp_path, {"tools.py": "from torch import nn\n" + FUNCTIONS, "net.py": net})


MIXIN = """
class Steps:
    def steps(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
KEEPS = """
from torch import nn


class Keeps(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers[0](x) + len(self.layers)
"""


def test_a_base_of_another_file(tmp_path: Path) -> None:
    net = NET.format(name="Net", line="self.steps(x)").replace("Net(nn.M", "Net(Steps, nn.M")
    net = "from torch import nn\n\nfrom .steps import Steps\n" + net
    compare(tmp_path, {"steps.py": MIXIN, "net.py": net})


def test_a_module_of_another_file_that_keeps_them(tmp_path: Path) -> None:
    net = NET.format(name="Net", line="self.kept(x)") + "\n"
    net = net.replace("Stack()\n", "Keeps(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))\n")
    net = "from torch import nn\n\nfrom .keeps import Keeps\n" + net.replace(
        "self.stack", "self.kept"
    )
    compare(tmp_path, {"keeps.py": KEEPS, "net.py": net})


def test_those_of_a_third_file(tmp_path: Path) -> None:
    """Their class is that file's to choose, and it does not know what becomes of them."""
    body = "from torch import nn\n\n\nclass Body(nn.Sequential):\n    pass\n"
    net = (
        "from torch import nn\n\nfrom .body import Body\nfrom .tools import run\n\n\n"
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.body = Body(nn.Linear(4, 4))\n\n"
        "    def forward(self, x):\n        return run(self.body, x)\n"
    )
    tools = "from torch import nn\n" + FUNCTIONS
    found = convert(tmp_path, {"tools.py": tools, "body.py": body, "net.py": net})
    assert any("API007" in one for one in blocking(found))
