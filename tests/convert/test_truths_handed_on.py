"""``same = torch.equal(x, y)``: torch gives a bool of Python, JAX an array, wherever the answer goes before it is asked."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def same(self, x):
        return torch.{name}(x, x * 2)

    def forward(self, x):
{lines}
"""


def _net(lines: str, name: str = "equal") -> str:
    return NET.format(name=name, lines="\n".join(" " * 8 + line for line in lines.splitlines()))


@pytest.mark.parametrize("name", ["equal", "allclose"])
@pytest.mark.parametrize(
    "lines",
    [
        "if self.same(x):\n    return x\nreturn x + 1",
        "same = self.same(x)\nif same:\n    x = x + 1\nreturn x",
        "return torch.where(torch.tensor(self.same(x)), x, x + 1) if False else x",
    ],
)
def test_both_ways_are_computed(lines: str, name: str) -> None:
    check(_net(lines, name))


@pytest.mark.parametrize(
    "lines",
    [
        "same = self.same(x)\nif not same:\n    return x[:1]\nreturn x + 1",
        "n = 1 if self.same(x) else 2\nreturn x[:n]",
        "while not self.same(x):\n    x = x * 0\nreturn x",
    ],
)
def test_what_python_would_have_to_know_is_told(lines: str) -> None:
    assert "DYN002" in rules_of(_net(lines))


def test_constructors_may_ask() -> None:
    check(
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        a = torch.ones(3)\n"
        "        self.n = 2 if torch.equal(a, torch.ones(3)) else 3\n\n    def forward(self, x):\n        return x * self.n\n"
    )
