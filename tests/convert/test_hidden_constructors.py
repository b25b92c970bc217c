"""Modules without a constructor, before others among the bases of a class: theirs is the one that runs in torch."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
class Noise(nn.Module):
    {init}def noise(self, x):
        return F.dropout(x, 0.5, self.training)

class Root(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(n, 4)

    def forward(self, x):
        return self.fc(x)

class M({bases}):
    {body}
"""
FORWARD = "def forward(self, x):\n        return self.noise(self.fc(x))"


def test_the_constructor_of_the_next_base_is_not_hidden() -> None:
    hidden = SOURCE.format(init="", bases="Noise, Root", body=FORWARD)
    assert rules_of(hidden) == ["API005"]
    check(SOURCE.format(init="", bases="Root, Noise", body=FORWARD))


@pytest.mark.parametrize("call", ["Root.__init__(self)", "super(Noise, self).__init__()"])
def test_a_constructor_that_says_whose_it_runs(call: str) -> None:
    body = f"def __init__(self):\n        {call}\n\n    {FORWARD}"
    source = SOURCE.format(init="", bases="Noise, Root", body=body)
    if "super" in call:
        assert rules_of(source)
    else:
        check(source)
