"""State that a function of the file may have made, and writes to an attribute of the same name in another class."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

PROGRAM = """
TABLE = torch.arange(16.0).reshape(4, 4)


def kernels(n):
    return TABLE, torch.ones(n)


class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        weight, window = kernels(4)
        MADE
        self.register_buffer("window", window)

    def forward(self, x):
        return x @ self.weight * self.window


class M(BASE):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 4))
        nn.init.constant_(self.weight, 0.5)

    def forward(self, x):
        return x @ self.weight
"""


def _source(made: str = 'self.register_buffer("weight", weight)', base: str = "nn.Module") -> str:
    return PROGRAM.replace("MADE", made).replace("BASE", base)


def test_an_attribute_of_another_class_is_another_one() -> None:
    check(_source())


@pytest.mark.parametrize(
    ("made", "base"),
    [
        ('self.register_buffer("weight", weight)', "Kept"),
        ("part = M(); part.weight = nn.Parameter(weight); self.weight = part.weight", "nn.Module"),
    ],
)
def test_one_that_may_be_the_same_is_not(made: str, base: str) -> None:
    assert rules_of(_source("\n        ".join(made.split("; ")), base))
