"""A parameter that a method of a module gives a second name: torch registers it under both."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """
class M(nn.Module):
    def __init__(self, film=False):
        super().__init__()
        self.film = film
        self.omega = nn.Parameter(torch.linspace(0.5, 2, 4))
        self.fc = nn.Linear(4, 4)
        {more}

    def forward(self, x):
        {lines}
"""


def _net(lines: str, more: str = "") -> str:
    return NET.format(lines="\n        ".join(one.strip() for one in lines.split(";")), more=more)


@pytest.mark.parametrize(
    "lines",
    [
        "self.gain = self.omega; return x * self.gain",
        "self.gain = self.omega if self.film is False else self.omega * 2; return x * self.gain",
        "self.gain = w = self.fc.weight; return x * self.gain.sum()",
    ],
)
def test_a_second_name(lines: str) -> None:
    # the state_dict has both names once it has run, and an optimizer trains it under either
    assert rules_of(_net(lines))


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ("gain = self.omega; return x * gain", ""),
        ("self.gain = self.omega * 1; return x * self.gain", ""),
        ("self.gain = self.omega.detach() * 2; return x * self.gain", ""),
        ("self.gain = self.fc.weight.sum(); return x * self.gain", ""),
    ],
)
def test_a_tensor_of_its_own(lines: str, more: str) -> None:
    check(_net(lines, more))
