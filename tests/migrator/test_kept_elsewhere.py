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
