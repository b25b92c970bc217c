"""Functions of a library nothing is known of: given tensors, and making what becomes a part of a module."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of


@pytest.mark.parametrize(
    ("brings", "call"),
    [
        ("import filters", "filters.blur(x)"),
        ("import filters", "filters.ops.blur(x)"),
        ("import filters.ops", "filters.ops.blur(x)"),
        ("import filters.ops as ops", "ops.blur(x)"),
        ("from filters import ops", "ops.blur(x)"),
        ("from filters.ops import blur", "blur(x)"),
    ],
)
def test_a_function_that_is_given_a_tensor(brings: str, call: str) -> None:
    used = "\n\ndef use(x: torch.Tensor):\n    return "
    assert "API004" in rules_of(f"{brings}{used}{call}\n")
    assert rules_of(f"{brings}{used}x * {call.replace('(x)', '(3)')}\n") == []
    assert rules_of(f"{brings.replace('filters', 'scipy')}{used}x\n") == []


BASE = """
from filters import build


class Base(nn.Module):
    def __init__(self, part, n=3):
        super().__init__()
        self.part = part
        self.n = n

    def forward(self, x):
        return self.part(x) * self.n


"""
HEIR = "class Net(Base):\n    def __init__(self, n):\n        {line}\n        super().__init__({given})\n"


@pytest.mark.parametrize(
    "code",
    [
        HEIR.format(line="part = build(n)", given="part, n"),
        HEIR.format(line="part, other = build(n)", given="part"),
        HEIR.format(line="n += 1", given="part=build(n)"),
        "def make(n):\n    return Base(build(n))\n",
        "def make(n):\n    return nn.Sequential(nn.Linear(n, n), build(n))\n",
        "def make(n):\n    return nn.ModuleList([build(n) for _ in range(3)])\n",
        "def make(n):\n    layer = build(n) if n > 1 else nn.Identity()\n    return nn.ModuleDict({'a': layer})\n",
    ],
)
def test_what_it_makes_is_a_part_of_a_module(code: str) -> None:
    assert "API004" in rules_of(BASE + code)


@pytest.mark.parametrize(
    "code",
    [
        HEIR.format(line="m = build(n)", given="nn.Linear(n, n), m"),
        "def make(n):\n    return Base(nn.Linear(n, n), build(n))\n",
    ],
)
def test_what_is_not_called_may_be_anything(code: str) -> None:
    assert rules_of(BASE + code) == []


@pytest.mark.parametrize(
    "made",
    ["filters.Blur(3)", "filters.ops.Blur(3)", "filters.ops.Blur(3).eval()", "Blur(3).eval()"],
)
def test_what_it_makes_is_called(made: str) -> None:
    source = (
        "import filters\nfrom filters import Blur\n\n\nclass M(nn.Module):\n    def __init__(self):\n"
        f"        super().__init__()\n        self.blur = {made}\n\n"
        "    def forward(self, x):\n        return self.blur(x)\n"
    )
    assert "API004" in rules_of(source)
