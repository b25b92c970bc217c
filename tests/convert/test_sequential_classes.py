"""Own classes derived from Sequential whose children get names: in the class, in one derived from it, from outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.convert.tools import check, rules_of
from tests.migrator.test_packages import blocking, convert

MODEL = """
class Multi(nn.Sequential):
    {init}

    def forward(self, x):
        out = []
        for layer in self._modules.values():
            x = layer(x)
            out.append(x)
        return torch.stack(out)


class Sub(Multi):
    def __init__(self):
        super().__init__({given})
        self.add_module("last", nn.Linear(4, 4))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        {line}

    def forward(self, x):
        return self.net(x)
"""
HANDED = "def __init__(self, *args):\n        super().__init__(*args)"
NONE = "width = 4"


@pytest.mark.parametrize("init", [HANDED, NONE])
@pytest.mark.parametrize("given", ["", "nn.Linear(4, 4)", "nn.Linear(4, 4), nn.Tanh()"])
@pytest.mark.parametrize(
    "line",
    [
        "self.net = Sub()",
        "self.net = Multi(nn.Linear(4, 4), nn.Tanh())",
        "self.net = Multi(); self.net.add_module('one', nn.Linear(4, 4))",
        "net = nn.Sequential() if 2 > 3 else Multi(); net.add_module('b', nn.Linear(4, 4)); self.net = net",
        "net = nn.Sequential() if 3 > 2 else Multi(); net.add_module('b', nn.Linear(4, 4)); self.net = net",
        "net = Multi(nn.Tanh()); net.add_module('b', nn.Linear(4, 4)); self.net = net",
    ],
)
def test_children_with_names(init: str, given: str, line: str) -> None:
    check(MODEL.format(init=init, given=given, line=line))


GROWN = """
def grow(net{hint}):
    net.add_module("x", nn.Linear(4, 4))
    return net


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = grow(nn.Sequential(nn.Linear(4, 4)))

    def forward(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize("hint", ["", ": nn.Module", ": nn.Sequential"])
def test_a_child_for_what_only_a_run_tells(hint: str) -> None:
    assert rules_of(GROWN.format(hint=hint)) == ["API007"]


STACK = """
from torch import nn


class Stack(nn.Sequential):
    def __init__(self, *args):
        super().__init__(*args)


class Bare(nn.Sequential):
    pass


class Fixed(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 4))
"""
USER = """
from torch import nn
from .stack import Bare, Fixed, Stack


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Stack(), Bare(nn.Linear(4, 4))
        self.a.add_module("one", nn.Linear(4, 4))
        self.b.add_module("two", nn.Linear(4, 4))
        self.c = Fixed()
        {line}

    def forward(self, x):
        return self.a(x) + self.b(x) + self.c(x)
"""


def test_children_that_another_file_names(tmp_path: Path) -> None:
    """What a class derived from Sequential is, its own file says: one that is open has names."""
    assert blocking(convert(tmp_path, {"stack.py": STACK, "user.py": USER.format(line="")})) == []
    line = "self.c.add_module('three', nn.Linear(4, 4))"
    found = convert(tmp_path / "more", {"stack.py": STACK, "user.py": USER.format(line=line)})
    assert ["API007" in one for one in blocking(found)] == [True]


def test_a_class_with_names_derived_from_one_of_another_file(tmp_path: Path) -> None:
    more = "\n\nclass Sub(Fixed):\n    def __init__(self):\n        super().__init__()\n        "
    more += "self.add_module('last', nn.Linear(4, 4))\n"
    user = USER.format(line="") + more
    found = convert(tmp_path, {"stack.py": STACK, "user.py": user})
    assert any("API007" in one for one in blocking(found))


@pytest.mark.parametrize(
    "body",
    [
        "        self.layers = nn.Sequential()\n",
        "        self.names = nn.Linear(4, 4)\n",
        '        self.add_module("layers", nn.Linear(4, 4))\n',
    ],
)
def test_a_child_called_as_an_attribute_of_the_output_is_a_finding(body: str) -> None:
    source = f"class M(nn.Sequential):\n    def __init__(self):\n        super().__init__()\n{body}"
    assert rules_of(source) == ["API007"]


@pytest.mark.parametrize(
    "names",
    ['OrderedDict([("layers", nn.Linear(4, 4))])', 'OrderedDict({"names": nn.Linear(4, 4)})'],
)
def test_a_key_called_as_an_attribute_of_the_output_is_a_finding(names: str) -> None:
    source = (
        f"from collections import OrderedDict\n\ndef make():\n    return nn.Sequential({names})\n"
    )
    assert rules_of(source) == ["API007"]


def test_one_without_a_constructor_that_draws() -> None:
    source = """
class Flow(nn.Sequential):
    def forward(self, x):
        for layer in self._modules.values():
            x = layer(x)
        return x

    def sample(self, n):
        return self.forward(torch.Tensor(n, 4).normal_())


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = Flow(nn.Linear(4, 4), nn.Linear(4, 4))

    def forward(self, x):
        return self.flow(x)
"""
    code = check(source)
    assert "super().__init__(*args, **kwargs)" in code
