"""Classes that derive from layers which are plain functions in the output."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
import torch
from torch import nn

class Own(nn.{base}):
    def forward(self, x):
        return super().forward(x) * 2

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.own = Own({given})

    def forward(self, x):
        x = self.l(x)
        return self.own(x{shape})
"""


@pytest.mark.parametrize(
    ("base", "given", "shape"),
    [
        ("Tanh", "", ""),
        ("ReLU", "", ""),
        ("SiLU", "", ""),
        ("LeakyReLU", "0.2", ""),
        ("ELU", "alpha=0.5", ""),
        ("Softplus", "beta=2", ""),
        ("PixelShuffle", "2", ".reshape(1, 12, 1, 1).repeat(1, 4, 1, 1)[:, :4]"),
        ("MaxPool1d", "2, padding=1", "[None]"),
        ("MaxPool3d", "(1, 1, 2), stride=1", "[None, None, None]"),
    ],
)
def test_a_class_of_ones_own(base: str, given: str, shape: str) -> None:
    code = check(SOURCE.format(base=base, given=given, shape=shape))
    assert f"class Own({base}AsTorch)" in code


def test_one_that_may_write_to_what_it_is_handed_is_a_finding() -> None:
    assert "API001" in rules_of(SOURCE.format(base="ReLU", given="inplace=True", shape=""))
