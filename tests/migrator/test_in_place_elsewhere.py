"""Layers made with ``inplace=True`` in one file and called in another: what they are called with has another value."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.infer.handing import parameters
from migrator.package.scan import scan
from tests.migrator.test_packages import blocking, convert

NET = """
from torch import nn
IMPORT


class Net(BASE):
    def __init__(self):
        super().__init__()
        self.act = MADE

    def forward(self, x):
        x = x * 2
        y = self.act(x)
        return y + x
"""
ACTS = """
import functools
import torch.nn.functional as F
from torch import nn

relu = functools.partial(nn.ReLU, inplace=FLAG)
ACT = {"relu": functools.partial(F.relu, inplace=FLAG), "none": nn.Identity()}


def get(name):
    return ACT[name]


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = ACT["relu"]
"""


def _net(line: str, made: str, base: str = "nn.Module") -> str:
    text = NET.replace("IMPORT", line).replace("MADE", made).replace("BASE", base)
    return text.replace("        self.act = None\n", "")


@pytest.mark.parametrize(
    "net",
    [
        _net("from .acts import ACT", 'ACT["relu"]'),
        _net("from .acts import get as get_it", 'get_it("relu")'),
        _net("from . import acts", "acts.relu()"),
        _net("from .acts import Base", "None", "Base"),
    ],
)
def test_made_elsewhere(tmp_path: Path, net: str) -> None:
    found = convert(tmp_path, {"acts.py": ACTS.replace("FLAG", "True"), "net.py": net})
    assert [one[:14] for one in blocking(found)] == ["net.py: MUT002"]
    files = {"acts.py": ACTS.replace("FLAG", "False"), "net.py": net}
    assert blocking(convert(tmp_path / "other", files)) == []


ASKED = """
from torch import nn


TABLE = {"ReLU": nn.ReLU, "SiLU": nn.SiLU}


def create(name, inplace=None):
    layer = TABLE[name]
    if inplace is None:
        return layer()
    return layer(inplace=inplace)
"""


@pytest.mark.parametrize(
    ("made", "rules"),
    [
        ('create("ReLU")', []),
        ('create("ReLU", inplace=False)', []),
        ('create("ReLU", inplace=True)', ["net.py: MUT002"]),
        ('create("ReLU", True)', ["net.py: MUT002"]),
    ],
)
def test_made_elsewhere_where_it_is_told_to(tmp_path: Path, made: str, rules: list[str]) -> None:
    net = _net("from .acts import create", made)
    assert [
        one[:14] for one in blocking(convert(tmp_path, {"acts.py": ASKED, "net.py": net}))
    ] == rules


LIB = """
from torch import nn


class Block(nn.Module):
    def __init__(self, fn=None, act_layer=nn.GELU):
        super().__init__()
        self.fn = fn
        self.act = act_layer()

    def forward(self, x):
        x = x * 2
        return self.CALLED(x) + x
"""
USER = """
import functools
from torch import nn
from .lib import Block

ACT = functools.partial(nn.ReLU, inplace=True)


def make():
    return Block(GIVEN)
"""


@pytest.mark.parametrize(
    ("called", "given", "rules"),
    [
        ("fn", "nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))", ["lib.py: MUT002"]),
        ("fn", "nn.ReLU(True)", ["lib.py: MUT002"]),
        ("act", "act_layer=ACT", ["lib.py: MUT002"]),
        ("act", "**dict(act_layer=ACT)", ["lib.py: MUT002"]),
        ("fn", "nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))", []),
        ("fn", "nn.ReLU()", []),
        ("act", "act_layer=nn.ReLU", []),
    ],
)
def test_handed_to_another_file(tmp_path: Path, called: str, given: str, rules: list[str]) -> None:
    files = {"lib.py": LIB.replace("CALLED", called), "user.py": USER.replace("GIVEN", given)}
    files["user.py"] = files["user.py"].replace("import Block", "import Block as Part")
    files["user.py"] = files["user.py"].replace("Block(", "Part(")
    if "ACT" not in given:
        files["user.py"] = files["user.py"].replace("ACT = functools", "UNUSED = functools")
    assert [one[:14] for one in blocking(convert(tmp_path, files))] == rules


def _parameters(text: str) -> frozenset[str]:
    return parameters({"m": scan(text).handed}, lambda file, name: ("m", name))["m"]


@pytest.mark.parametrize(
    "line",
    [
        "run(nn.Tanh(), 1, nn.ReLU(True))",
        "run(1, 2, fn=nn.LeakyReLU(0.1, True))",
        "act = nn.ReLU(inplace=True)\nrun(1, 2, act)",
        "run(1, 2, lambda x: x.relu_())",
        "run(1, 2, torch.relu_)",
        "run(1, 2, nn.Sequential(OrderedDict([('a', nn.ReLU(True))])))",
        "def other(fn):\n    run(1, 2, fn)\n\nother(nn.ReLU(True))",
        "def other(**kwargs):\n    run(1, 2, **kwargs)\n\nother(fn=nn.ReLU(True))",
        "class A:\n    def f(self):\n        self.act = nn.ReLU(True)\n        run(1, 2, self.act)",
    ],
)
def test_arguments_are_followed_by_name(line: str) -> None:
    text = f"def run(a, b, fn):\n    pass\n\n\n{line}\n"
    assert "run.fn" in _parameters(text)
    other = text.replace("True", "False").replace("0.1, False", "0.1").replace("relu_", "relu")
    assert not _parameters(other)


def test_what_stands_behind_another_layer_writes_to_no_argument() -> None:
    text = "def run(fn):\n    pass\n\n\nrun(nn.Sequential(nn.Linear(4, 4), nn.ReLU(True)))\n"
    assert not _parameters(text)


MAKERS = """
from inspect import isfunction
from torch import nn


def relu(inplace=FLAG):
    return lambda: nn.ReLU(inplace=inplace)


def create(fn):
    assert fn is not None
    if isfunction(fn):
        return fn()
    if isinstance(fn, str):
        raise ValueError(fn)
    return fn
"""
ACTED = """
from torch import nn
IMPORT


class Block(nn.Module):
    def __init__(self, act=relu()):
        super().__init__()
        self.norm = None
        self.layer = create(act)

    def forward(self, x):
        x = x * 2
        y = self.layer(x)
        return y + x
"""


def _blocking_of_acted(folder: Path, flag: str, apart: bool) -> list[str]:
    makers = MAKERS.replace("FLAG", flag)
    line = "from .acts import create, relu" if apart else makers
    files = {"acts.py": makers, "net.py": ACTED.replace("IMPORT", line)}
    return [one[:14] for one in blocking(convert(folder, files))]


@pytest.mark.parametrize("apart", [True, False])
def test_a_function_that_gives_back_what_it_is_handed_called(tmp_path: Path, apart: bool) -> None:
    assert _blocking_of_acted(tmp_path, "True", apart) == ["net.py: MUT002"]


def test_a_function_that_gives_back_what_it_is_handed_and_told_not_to(tmp_path: Path) -> None:
    assert _blocking_of_acted(tmp_path, "False", apart=True) == []
