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
    files = {"net.py": text, **({"lib.py": LIB} if elsewhere else {})}
    return _agree(path, files, first, places, lines)


def _agree(
    path: Path, files: dict[str, str], first: int, places: list[int], names: list[str]
) -> int:
    """Compare the modules ``M0``, ``M1`` … that end at some lines, those that nothing is told of; how many there are."""
    result = convert(path, files, "flaxed")
    told = [f.line for f in result.findings if f.blocks and Path(f.path).name == "net.py"]
    assert not [line for line in told if line <= first]
    found = 0
    for number, last in enumerate(places):
        if not any(
            first < line <= last for line in told
        ):  # anew, as the one before may write to what all read
            theirs = UserCode(path / "src").load(path / "src/pkg/net.py")
            ours = UserCode(path / "out").load(path / "out/flaxed/net.py")
            model, port = getattr(theirs, f"M{number}"), getattr(ours, f"M{number}")
            found += agree(model, port, names[number])
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


MADE = {
    "self.t = G": "self.t",
    "self.register_buffer('t', G)": "self.t",
    "self.t = nn.Parameter(G)": "self.t",
    "self.t = nn.Parameter(G, requires_grad=False)": "self.t",
    "self.o = Keep(G)": "self.o.x",
    "self.ts = [G]": "self.ts[0]",
    "self.p = Part(G)": "self.p.t",
    "self.t = G.view(3, 4)": "self.t",
    "self.t = G * 1": "self.t",
    "self.t = t": "self.t",
}
KEPT = """class Part(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.t = t

    def forward(self, x):
        return x + self.t


"""
WRITES = [
    "S += 1\n        return x + G",
    "G.add_(1)\n        return x + S",
    "y = S\n        y += 1\n        return x + G",
    "S.mul_(2)\n        return x + G",
    "y = G\n        y += 1\n        return x + S",
    "with torch.no_grad():\n            S.copy_(x)\n        return x + G",
    "S.data.mul_(2)\n        return x + G",
    "return x + S",
    "y = G\n        S.data.add_(1)\n        return x + y",
]
STATE = [*itertools.product(MADE, WRITES, ["TABLE", "TABLES[0]", "get()"])]


def _kept(path: Path, drawn: list[tuple[str, str, str]], elsewhere: bool) -> int:
    """As ``_compare``, of modules whose state is made of what the file has."""
    lib = LIB + KEPT + OTHERS
    names = "BOX, NAMED, TABLE, TABLES, Base, Box, Keep, Part, get, get_named"
    text = (
        f"import torch\nfrom torch import nn\nfrom .lib import {names}\n\n\n" if elsewhere else lib
    )
    first, places = text.count("\n"), []
    for number, (made, lines, name) in enumerate(drawn):
        given = f", t={name}" if made == "self.t = t" else ""
        lines = lines.replace("S", MADE[made]).replace("G", name)
        text += f"class M{number}(nn.Module):\n    def __init__(self{given}):\n        super().__init__()\n"
        text += (
            f"        {made.replace('G', name)}\n\n    def forward(self, x):\n        {lines}\n\n\n"
        )
        places.append(text.count("\n"))
    files = {"net.py": text, **({"lib.py": lib} if elsewhere else {})}
    return _agree(path, files, first, places, [str(one) for one in drawn])


@pytest.mark.parametrize("elsewhere", [False, True])
def test_state_of_today(tmp_path: Path, elsewhere: bool) -> None:
    _kept(tmp_path, random.Random(SEED).sample(STATE, 40), elsewhere)


@pytest.mark.sweep
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("made", MADE)
def test_all_state(tmp_path: Path, made: str, elsewhere: bool) -> None:
    found = _kept(tmp_path, [one for one in STATE if one[0] == made], elsewhere)
    assert found >= 2 * ("nn.Parameter(G)" not in made)


def test_state_that_nobody_writes_to_is_converted(tmp_path: Path) -> None:
    kept = [one for one in STATE if one[1] == "return x + S"]
    trained = [one for one in kept if one[0] == "self.t = nn.Parameter(G)"]  # get() reads it, too
    drawn = [one for one in kept if one not in trained]
    assert _kept(tmp_path, drawn, False) == len(drawn)


def test_state_that_another_file_writes_to(tmp_path: Path) -> None:
    lib = "import torch\nfrom torch import nn\n\n\nclass Count(nn.Module):\n    def __init__(self, t):\n        super().__init__()\n"
    lib += "        self.register_buffer('t', t)\n\n    def forward(self, x):\n        self.t += 1\n        return x + self.t\n"
    net = "import torch\nfrom torch import nn\nfrom .lib import Count\n\nTABLE = torch.zeros(4)\n\n\nclass M(nn.Module):\n"
    net += "    def __init__(self):\n        super().__init__()\n        self.count = Count(MADE)\n\n    def forward(self, x):\n"
    net += "        return self.count(x) + TABLE\n"
    for made, rules in (("TABLE", ["MUT001"]), ("TABLE.clone()", [])):
        path = tmp_path / made
        result = convert(path, {"lib.py": lib, "net.py": net.replace("MADE", made)})
        assert [f.rule for f in result.findings if f.blocks] == rules


def test_state_of_a_class_of_another_file(tmp_path: Path) -> None:
    lib = (
        "import torch\nfrom torch import nn\n\nTABLE = torch.zeros(4)\n\n\nclass Base(nn.Module):\n"
    )
    lib += "    def __init__(self):\n        super().__init__()\n        self.t = TABLE\n"
    net = "import torch\nfrom .lib import TABLE, Base\n\n\nclass M(Base):\n    def forward(self, x):\n        LINE\n"
    for line, rules in (("self.t += 1; return x + TABLE", ["MUT001"]), ("return x + self.t", [])):
        path = tmp_path / line[:8].strip()
        result = convert(path, {"lib.py": lib, "net.py": net.replace("LINE", line)})
        assert [f.rule for f in result.findings if f.blocks] == rules


TRAINED = """TABLE = torch.zeros(4)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(MADE)

    def forward(self, x):
        return x * self.w + READ
"""


def test_a_parameter_of_what_is_read_besides() -> None:
    """An optimizer that writes to the one writes to the other."""
    for made, read, rules in (
        ("TABLE", "TABLE", ["MUT001"]),
        ("TABLE", "1", []),
        ("TABLE.clone()", "TABLE", []),
    ):
        assert rules_of(TRAINED.replace("MADE", made).replace("READ", read)) == rules
