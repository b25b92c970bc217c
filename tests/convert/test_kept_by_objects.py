"""Plain objects that keep a tensor and write to it in place, and calls that give state which later calls write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.convert.tools import check, rules_of
from tests.migrator.test_packages import blocking, convert

CLASSES = """
from dataclasses import dataclass
import torch
from torch import nn


class Box:
    def __init__(self, h):
        self.h = h

    def twice(self):
        self.h *= 2
        return self


@dataclass
class State:
    h: torch.Tensor

    def step(self, d):
        self.h += d


class Mean:
    def __init__(self):
        self.total = 0

    def add(self, x):
        self.total += x
        return self.total


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x):
        self.total += x.mean(0)
        return self.total
"""
NET = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.counter = Counter()

    def write(self, s):
        s.h += 1

    def forward(self, x):
        x = x - 1
        LINES
"""
SEEN = {
    "a method": "b = Box(x); b.twice(); return x + 1",
    "a method of a dataclass": "s = State(x); s.step(1); return x",
    "an attribute": "b = Box(x); b.h += 1; return x",
    "an attribute of a dataclass": "s = State(h=x); s.h += 1; return x",
    "a method of the model": "b = Box(x); self.write(b); return x",
    "what a method has given before": "m = Mean(); t = m.add(x); m.add(x); return x + t",
    "a buffer that a part has given before": "t = self.counter(x); self.counter(x); return x + t",
}
NOT_SEEN = {
    "the object alone is read": "b = Box(x); b.twice(); return b.h + 1",
    "a copy": "s = State(x.clone()); s.step(1); return x + s.h",
    "something new": "b = Box(x * 2); b.twice(); return x + b.h",
    "the new value": "m = Mean(); m.add(x); t = m.add(x); return x + t",
    "a copy of what is given": "t = self.counter(x).clone(); self.counter(x); return x + t",
    "the name is bound anew": "x = Box(x); x.twice(); return x.h",
}


def _net(lines: str) -> str:
    return NET.replace("LINES", lines.replace("; ", "\n        "))


@pytest.mark.parametrize("lines", SEEN.values(), ids=SEEN)
def test_what_is_written_is_seen_by_others(tmp_path: Path, lines: str) -> None:
    assert set(rules_of(CLASSES + _net(lines))) == {"MUT001"}
    net = "from torch import nn\nfrom .held import Box, Counter, Mean, State\n\n" + _net(lines)
    found = convert(tmp_path, {"held.py": CLASSES, "net.py": net})
    assert {one[:14] for one in blocking(found)} == {"net.py: MUT001"}


@pytest.mark.parametrize("lines", NOT_SEEN.values(), ids=NOT_SEEN)
def test_what_nobody_else_sees(lines: str) -> None:
    check(CLASSES + _net(lines))
