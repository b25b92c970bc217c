"""What a class of another file keeps for one that derives from it: refused, or torch's results."""

from __future__ import annotations

import datetime
import os
import random
from pathlib import Path

import pytest

from migrator.usercode import UserCode
from tests.convert.test_kept_state import BASE, BEGINS, DERIVED, HEAD, SLOTS, agree, programs
from tests.migrator.test_packages import convert

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
MAIN = "import torch\nfrom torch import nn\nfrom .lib import Base, Obj, Sub\n\n\n"


def _compare(path: Path, lines: list[str], begin: str, circle: bool = False) -> int:
    """How many of some forward passes are converted; each of them has torch's results."""
    text, places = MAIN, []
    first = text.count("\n")
    for number, one in enumerate(lines):
        text += DERIVED.format(number=number, begin=begin, lines=one)
        places.append(text.count("\n"))
    lib = ("from . import net\n" if circle else "") + HEAD + BASE
    result = convert(path, {"lib.py": lib, "net.py": text}, "flaxed")
    told = [f.line for f in result.findings if f.blocks and Path(f.path).name == "net.py"]
    assert not [f for f in result.findings if f.blocks and Path(f.path).name == "lib.py"]
    theirs = UserCode(path / "src").load(path / "src/pkg/net.py")
    ours = UserCode(path / "out").load(path / "out/flaxed/net.py")
    found = 0
    for number, last in enumerate(places):
        if not any(first < line <= last for line in told):
            found += agree(
                getattr(theirs, f"M{number}"), getattr(ours, f"M{number}"), lines[number]
            )
        first = last
    return found


@pytest.mark.parametrize("circle", [False, True])
@pytest.mark.parametrize("slot", SLOTS)
def test_kept_and_taken_out_today(tmp_path: Path, slot: str, circle: bool) -> None:
    drawn = random.Random(SEED).sample(programs(slot), 12)
    _compare(tmp_path, drawn, BEGINS[circle], circle)


@pytest.mark.sweep
@pytest.mark.parametrize("begin", BEGINS)
@pytest.mark.parametrize("slot", SLOTS)
def test_all_that_is_kept_and_taken_out(tmp_path: Path, slot: str, begin: str) -> None:
    every = programs(slot)
    for first in range(0, len(every), 60):
        _compare(tmp_path / str(first), every[first : first + 60], begin, first % 120 == 60)


def test_what_is_kept_is_converted(tmp_path: Path) -> None:
    lines = [
        f"{store}\n        return self.get() + x" for store in ("self.kept = x", "self.put(x)")
    ]
    assert (
        _compare(tmp_path, [*lines, "self.kept, _ = x, 1\n        return self.kept + x"], "pass")
        == 3
    )


GUARDED = [
    "y = self.s\n            y += 1\n            return self.s + x",
    "self.s += 1\n            return self.s + x",
    "self.s.mul_(2)\n            return self.s + x",
    "x = x * self.s.view(1, -1)",
    "x = x + self.s.numel()",
    "x = x + self.s.float().sum(-1, keepdim=True)",
    "x = x + len(self.s)",
    "x = x + self.s[0]",
    "x = x * (2 if self.s.dim() == 1 else 3)",
    "x = torch.cat([x, self.s[None]], 0)",
    "x = x + self.s.size(0)",
    "x = x @ torch.diag(self.s)",
    "self.s = self.s + 1\n            x = x + self.s",
    "x = x + torch.zeros_like(self.s)",
    "x = x + self.s.to(x.dtype)",
    "x = self.s(x)",
]
PART = """class Part{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = None

    def put(self, s):
        self.s = s

    def forward(self, x):
        x = x * 1
        if self.s is not None:
            {lines}
        return x


"""
WITHIN = """class M{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part{number}()
        self.part.s = VALUE

    def forward(self, x):
        return self.part(x)


"""
GIVEN = {
    "by an heir": "class M{number}(Part{number}):\n    def __init__(self):\n        super().__init__()\n"
    "        self.s = torch.arange(4.0)\n\n\n",
    "a layer by an heir": "class M{number}(Part{number}):\n    def __init__(self):\n        super().__init__()\n"
    "        self.s = nn.Tanh()\n\n\n",
    "by a method": "class M{number}(Part{number}):\n    def __init__(self):\n        super().__init__()\n"
    "        self.put(torch.arange(4.0))\n\n\n",
    "from outside": WITHIN.replace("VALUE", "torch.arange(4.0)"),
    "a parameter from outside": WITHIN.replace("VALUE", "nn.Parameter(torch.arange(4.0))"),
    "by the forward pass": WITHIN.replace("        self.part.s = VALUE\n", "").replace(
        "return self.part", "self.part.s = x[0]\n        return self.part"
    ),
}


@pytest.mark.parametrize("given", GIVEN)
def test_what_is_none_where_its_class_stands(tmp_path: Path, given: str) -> None:
    lib, names = "import torch\nfrom torch import nn\n\n\n", []
    places, first = [], lib.count("\n")
    for number, lines in enumerate(GUARDED):
        lib += PART.format(number=number, lines=lines)
        names.append(f"Part{number}")
        places.append(lib.count("\n"))
    net = f"import torch\nfrom torch import nn\nfrom .lib import {', '.join(names)}\n\n\n"
    net += "".join(GIVEN[given].format(number=number) for number in range(len(GUARDED)))
    result = convert(tmp_path, {"lib.py": lib, "net.py": net}, "flaxed")
    told = [f.line for f in result.findings if f.blocks and Path(f.path).name == "lib.py"]
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py")
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py")
    found = 0
    for number, last in enumerate(places):
        if not any(first < line <= last for line in told):
            model, port = getattr(theirs, f"M{number}"), getattr(ours, f"M{number}")
            found += agree(model, port, GUARDED[number])
        first = last
    assert found
