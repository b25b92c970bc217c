"""Tensors of a file, of a class and of other files, by the names that a forward pass has for them: told, or torch's result."""

from __future__ import annotations

import datetime
import itertools
import os
import random
from pathlib import Path

import pytest

from migrator.usercode import UserCode
from tests.convert.test_kept_state import agree
from tests.convert.tools import rules_of
from tests.migrator.test_packages import convert

LIB = """import torch
from torch import nn

TABLE = torch.arange(12.0).reshape(3, 4)
TABLES = [torch.arange(12.0).reshape(3, 4)]
NAMED = {"a": torch.arange(12.0).reshape(3, 4)}


class Box:
    x = torch.arange(12.0).reshape(3, 4)

    def __init__(self):
        self.y = torch.arange(12.0).reshape(3, 4)

    def get(self):
        return self.y


BOX = Box()


def get():
    return TABLE


def get_named(k="a"):
    return NAMED[k]


class Base(nn.Module):
    table = torch.arange(12.0).reshape(3, 4)
    tables = [torch.arange(12.0).reshape(3, 4)]

    def own(self):
        return self.table


"""
OTHERS = """def same(t):
    return t


class Keep:
    def __init__(self, x):
        self.x = x


"""
IMPORTS = "import torch\nfrom torch import nn\nfrom .lib import BOX, NAMED, TABLE, TABLES, Base, Box, get, get_named\n\n\n"
NAMES = """TABLE TABLES[0] NAMED['a'] Box.x BOX.y BOX.x BOX.get() get() get_named() self.table self.tables[0]
self.own() type(self).table self.__class__.table Base.table TABLE[0] TABLE.view(3,4) get().t().t()""".split()
USES = [
    "y = G\n        y += 1\n        return x + G",
    "y = G\n        y.mul_(2)\n        return x + y",
    "y = G\n        y[0] = 5\n        return x + G",
    "y = G\n        x = x + y\n        return x",
    "G.add_(1)\n        return x + G",
    "y = G\n        G.mul_(2)\n        return x + y",
    "y = G * 1\n        y += 1\n        return x + G",
    "G[0] = 7\n        return x + G",
    "y = [G]\n        y[0] += 1\n        return x + G",
    "x = x * 1\n        x += G\n        return x + G",
    "torch.add(x, 1, out=G)\n        return x + G",
    "y = G\n        y.copy_(x)\n        return x * G",
    "G.data.mul_(2)\n        return x + G",
    "y = same(G)\n        y += 1\n        return x + G",
    "for y in [G]:\n            y += 1\n        return x + G",
    "y = torch.nn.functional.relu(G, inplace=True)\n        return x + G",
    "return x + G.fill_(1)",
    "y = Keep(G)\n        y.x += 1\n        return x + G",
]
EVERY = [use.replace("G", name) for name, use in itertools.product(NAMES, USES)]
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))


def _compare(path: Path, lines: list[str], elsewhere: bool) -> int:
    """How many of some forward passes are converted; each of them has torch's results in two calls."""
    text, places = (IMPORTS if elsewhere else LIB) + OTHERS, []
    first = text.count("\n")
    for number, one in enumerate(lines):
        text += f"class M{number}(Base):\n    def forward(self, x):\n        {one}\n\n\n"
        places.append(text.count("\n"))
    result = convert(path, {"net.py": text, **({"lib.py": LIB} if elsewhere else {})}, "flaxed")
    told = [f.line for f in result.findings if f.blocks]
    assert not [line for line in told if line <= first]
    found = 0
    for number, last in enumerate(places):
        if not any(
            first < line <= last for line in told
        ):  # anew, as the one before may write to what all read
            theirs = UserCode(path / "src").load(path / "src/pkg/net.py")
            ours = UserCode(path / "out").load(path / "out/flaxed/net.py")
            model, port = getattr(theirs, f"M{number}"), getattr(ours, f"M{number}")
            found += agree(model, port, lines[number])
        first = last
    return found


@pytest.mark.parametrize("elsewhere", [False, True])
def test_names_of_today(tmp_path: Path, elsewhere: bool) -> None:
    _compare(tmp_path, random.Random(SEED).sample(EVERY, 40), elsewhere)


@pytest.mark.sweep
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_all_names(tmp_path: Path, name: str, elsewhere: bool) -> None:
    assert _compare(tmp_path, [use.replace("G", name) for use in USES], elsewhere) >= 2


def test_what_is_read_and_computed_with_is_converted(tmp_path: Path) -> None:
    lines = [f"y = {name} * 1\n        y += 1\n        return x + y + {name}" for name in NAMES]
    assert _compare(tmp_path, lines, True) == len(lines)


def test_a_list_of_numbers_is_no_tensor() -> None:
    source = "SIZES = [1, 2]\nOPTIONS = {'a': 1}\n\ndef f(x: torch.Tensor):\n    sizes = SIZES\n    sizes += [3]\n"
    source += (
        "    options = OPTIONS\n    options['b'] = 2\n    return x * sum(sizes) * len(options)\n"
    )
    assert rules_of(source) == []
