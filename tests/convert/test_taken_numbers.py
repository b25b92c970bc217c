"""A buffer that is given another: it keeps what that was when it gets a new value, in torch and in the port."""

from __future__ import annotations

import numpy as np
import pytest

from tests.convert.tools import both, rules_of, same

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("now", torch.ones(4))
        self.register_buffer("last", torch.zeros(4))

    def forward(self, x):
        {lines}
        return x * self.last - self.now
"""


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    "lines",
    [
        "self.last = self.now\n        self.now = self.now + x[0]",
        "self.last = self.now\n        self.now = x.mean(0)",
        "if self.training:\n            self.last = self.now\n        self.now = x[1] * 2",
    ],
)
def test_the_other_keeps_its_numbers(lines: str, jit: bool) -> None:
    model, port, _ = both(SOURCE.format(lines=lines))
    for i in range(3):
        same(model, port, np.full((3, 4), i + 1.0, np.float32), jit)


@pytest.mark.parametrize("jit", [False, True])
def test_what_is_only_written_in_place_is_one(jit: bool) -> None:
    model, port, _ = both(SOURCE.format(lines="self.last = self.now\n        self.now.add_(1)"))
    for i in range(3):
        same(model, port, np.full((3, 4), i + 1.0, np.float32), jit)


def test_both_ways_are_a_finding() -> None:
    lines = "self.last = self.now\n        self.now = x[0] * 2\n        self.now.add_(1)"
    assert rules_of(SOURCE.format(lines=lines)) == ["MUT001"]
