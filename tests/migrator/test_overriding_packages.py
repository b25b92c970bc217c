"""A class of one file that has a method or layer in the place of its base's, in another, whose methods write to what it gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.migrator.test_packages import blocking, convert

BASE = """
import torch
from torch import nn
import torch.nn.functional as F


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.act = nn.Linear(4, 4), nn.Tanh()
        self.register_buffer("total", torch.ones(4))

    def post(self, h):
        return h * 2

    def left(self, h):
        raise NotImplementedError

    def forward(self, x):
        h = self.lin(x)
USES
"""
HEIR = """
from torch import nn

from .base import Base


class M(Base):
HEIR
"""
POST = "def post(self, y):\n    return y"
REFUSED = {
    "a sum": (POST, "k = self.post(h)\nk += 1\nreturn h * k"),
    "an item": (POST, "k = self.post(h)\nk[:, 0] = 1\nreturn h * k"),
    "a method": (POST, "return h * self.post(h).mul_(2)"),
    "a function": (POST, "return h * F.relu(self.post(h), inplace=True)"),
    "no gradient": (POST, "with torch.no_grad():\n    k = self.post(h)\nreturn h * k"),
    "left open": (POST.replace("post", "left"), "k = self.left(h)\nk += 1\nreturn h * k"),
    "a buffer": ("def post(self, y):\n    return self.total", "k = self.post(h)\nk += 1\nreturn k"),
    "a layer": (
        "def __init__(self):\n    super().__init__()\n    self.act = nn.Identity()",
        "k = self.act(h)\nk += 1\nreturn h * k",
    ),
    "a layer that overwrites": (
        "def __init__(self):\n    super().__init__()\n    self.act = nn.ReLU(inplace=True)",
        "k = self.act(h)\nreturn h * k",
    ),
}
ALLOWED = {
    "a tensor of its own": ("def post(self, y):\n    return y + 1", REFUSED["a sum"][1]),
    "nothing is written": (POST, "return h * self.post(h)"),
    "another method": ("def other(self, y):\n    return y", REFUSED["a sum"][1]),
    "another layer": (
        "def __init__(self):\n    super().__init__()\n    self.act = nn.Sigmoid()",
        REFUSED["a layer"][1],
    ),
    "a layer that is run alone": (REFUSED["a layer that overwrites"][0], "return self.act(h)"),
}


def files(heir: str, uses: str) -> dict[str, str]:
    def indented(text: str, depth: int) -> str:
        return "\n".join(" " * depth + line for line in text.splitlines())

    return {
        "base.py": BASE.replace("USES", indented(uses, 8)),
        "heir.py": HEIR.replace("HEIR", indented(heir, 4)),
    }


@pytest.mark.parametrize(("heir", "uses"), REFUSED.values(), ids=REFUSED)
def test_the_heir_is_refused(tmp_path: Path, heir: str, uses: str) -> None:
    found = blocking(convert(tmp_path, files(heir, uses)))
    assert any("MUT001" in str(one) for one in found), found


@pytest.mark.parametrize(("heir", "uses"), ALLOWED.values(), ids=ALLOWED)
def test_the_heir_converts(tmp_path: Path, heir: str, uses: str) -> None:
    assert not blocking(convert(tmp_path, files(heir, uses)))
