"""Layers that another file chooses by a name, one of which writes to what it is called with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.migrator.test_packages import blocking, convert

OWN = """
from torch import nn


class Own(nn.Module):
    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def forward(self, x):
        LINE
"""
WRITES = "return x.mul_(2.0)"
WHERE_TOLD = "return x.mul_(x.sigmoid()) if self.inplace else x * x.sigmoid()"
WRITES_NOT = "return x * 2.0"
ACTS = """
from torch import nn
from .own import Own

ACTS = {"own": Own, "gelu": nn.GELU}


def get(name):
    return ACTS[name]


def make(name):
    if name in ACTS:
        return ACTS[name]()
    return nn.ReLU()
"""
RESIDUAL = """
from torch import nn


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return x + self.fn(x)
"""
NET = """
from torch import nn
IMPORT


class Net(nn.Module):
    def __init__(self, name="own"):
        super().__init__()
        self.act = MADE

    def forward(self, x):
        y = x + 1
        return y + self.act(y)
"""
MADE = {
    "a table": ("from .acts import ACTS", "ACTS[name]()"),
    "a table, by its file": ("from . import acts", "acts.ACTS[name]()"),
    "a function that gives the class": ("from .acts import get", "get(name)()"),
    "a function that makes one": ("from .acts import make", "make(name)"),
}


def _files(line: str, made: str, net: str = NET, apart: bool = True) -> dict[str, str]:
    files = {"own.py": OWN.replace("LINE", line), "acts.py": ACTS}
    imported, value = MADE[made]
    if not apart:
        files["acts.py"] = files.pop("own.py") + ACTS.replace("from .own import Own", "")
    return files | {"net.py": net.replace("IMPORT", imported).replace("MADE", value)}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("made", MADE)
def test_one_that_writes_whatever_it_is_told(tmp_path: Path, made: str, apart: bool) -> None:
    found = convert(tmp_path, _files(WRITES, made, apart=apart))
    assert [one[:14] for one in blocking(found)] == ["net.py: MUT002"]
    for line in (WHERE_TOLD, WRITES_NOT):
        other = convert(tmp_path / str(len(line)), _files(line, made, apart=apart))
        assert blocking(other) == []


HANDED = """
from torch import nn
from .residual import Residual
IMPORT


class Net(nn.Module):
    def __init__(self, name="own"):
        super().__init__()
        self.act = Residual(MADE)

    def forward(self, x):
        return self.act(x + 1)
"""


@pytest.mark.parametrize("made", MADE)
def test_one_that_is_handed_to_a_third_file(tmp_path: Path, made: str) -> None:
    made = made if "class" not in made else "a table"
    found = convert(tmp_path, _files(WRITES, made, HANDED) | {"residual.py": RESIDUAL})
    assert [one[:19] for one in blocking(found)] == ["residual.py: MUT002"]
    files = _files(WHERE_TOLD, made, HANDED) | {"residual.py": RESIDUAL}
    assert blocking(convert(tmp_path / "told", files)) == []


CHOOSING = """
from torch import nn


def make(name):
    if name == "relu":
        return nn.ReLU(inplace=FLAG)
    return nn.GELU()
"""
ASKED = """
from torch import nn


def make(name, inplace=False):
    if name == "relu":
        return nn.ReLU(inplace=inplace)
    return nn.GELU()
"""


@pytest.mark.parametrize(
    ("chosen", "call", "rules"),
    [
        (CHOOSING.replace("FLAG", "True"), "make(name)", ["residual.py: MUT002"]),
        (CHOOSING.replace("FLAG", "False"), "make(name)", []),
        (ASKED, "make(name)", []),
        (ASKED, "make(name, True)", ["residual.py: MUT002"]),
        (ASKED, "make(name, inplace=True)", ["residual.py: MUT002"]),
    ],
)
@pytest.mark.parametrize("by_file", [False, True])
def test_one_of_torch_that_a_function_chooses_for_a_third_file(
    tmp_path: Path, chosen: str, call: str, rules: list[str], by_file: bool
) -> None:
    line, made = "from .acts import make", call
    if by_file:
        line, made = "from . import acts", f"acts.{call}"
    net = HANDED.replace("IMPORT", line).replace("MADE", made)
    files = {"acts.py": chosen, "residual.py": RESIDUAL, "net.py": net}
    assert [one[:19] for one in blocking(convert(tmp_path, files))] == rules
