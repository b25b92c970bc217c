"""``def forward(self, x): return self.act(x)``: what a body on the line of its header writes to is seen by callers."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert, rules_of

SOURCE = """
import torch.nn.functional as F

class Act(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.flag = flag

    {body}

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Act()

    def forward(self, x):
        x = x * 2
        y = self.first(x)
        return y + {left}
"""
BODIES = [
    "def forward(self, x): return self.act(x)",
    "def forward(self, x): return F.relu(x, inplace=True)",
    "def forward(self, x): return x.relu_()",
    "def forward(self, x):\n        if self.flag: return x.sub_(1)\n        return x",
    "def forward(self, x):\n        for _ in range(2): return self.act(x)\n        return x",
    "def forward(self, x): return self.run(x)\n    def run(self, x): return self.act(x)",
    "def forward(self, x): return self.run(x)\n    def run(self, x): return x.relu_()",
]


@pytest.mark.parametrize("body", BODIES)
def test_a_body_on_the_line_of_its_header(body: str) -> None:
    assert "MUT003" in rules_of(SOURCE.format(body=body, left="x"))
    check(SOURCE.format(body=body, left="1"))


@pytest.mark.parametrize(
    "body",
    [
        "def forward(self, x):\n        y = x[:1]\n        if self.flag: return self.act(x) - y\n        return x",
        "def forward(self, x):\n        y = x\n        if self.flag: return self.act(x) - y\n        return x",
    ],
)
def test_another_name_for_what_is_written(body: str) -> None:
    assert "MUT001" in rules_of(SOURCE.format(body=body, left="1"))


@pytest.mark.parametrize("made", ["self.act(x)", "self.act(x) * 2"])
def test_a_method_that_hands_on_to_one_that_writes(made: str) -> None:
    """What is tried instead of a finding is asked the same again."""
    body = f"def forward(self, x):\n        return self.run(x)\n\n    def run(self, x):\n        return {made}"
    assert "MUT003" in rules_of(SOURCE.format(body=body, left="x"))
    check(SOURCE.format(body=body, left="1"))


def test_what_calls_nothing_stays_on_its_line() -> None:
    body = "def forward(self, x):\n        if self.flag: return x\n        return x + 1"
    assert "if self.flag: return x\n" in convert(SOURCE.format(body=body, left="x")).code
