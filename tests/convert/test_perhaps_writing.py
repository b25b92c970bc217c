"""Layers that may be one or another, one of which writes to its input: a residual that adds that input sees it changed."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

HANDED = """
import functools

ACT = functools.partial(nn.ReLU, inplace=True)


class Before(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(True)

    def forward(self, x):
        return self.relu(x) * 2


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x) + x


class M(nn.Module):
    def __init__(self, flag=1):
        super().__init__()
        self.layer = LAYER

    def forward(self, x):
        return self.layer(x * 2)
"""


@pytest.mark.parametrize(
    "layer",
    [
        "Residual(Before())",
        "nn.Sequential(Residual(Before()), Residual(nn.GELU()))",
        "nn.Sequential(*[Residual(Before() if i else nn.GELU()) for i in range(2)])",
        "Residual({'a': Before, 'b': nn.GELU}[flag]())",
        "Residual(dict(a=Before, b=nn.GELU)[flag]())",
        "Residual((Before if flag else nn.GELU)())",
        "Residual([Before, nn.GELU][flag]())",
        "nn.Sequential(Residual([Before, nn.GELU][flag]()), Residual(nn.GELU()))",
        "nn.Sequential(Residual(ACT()), Residual(nn.GELU()))",
    ],
)
def test_what_a_residual_is_handed_may_write(layer: str) -> None:
    assert {r[:3] for r in rules_of(HANDED.replace("LAYER", layer))} == {"MUT"}


@pytest.mark.parametrize(
    "layer",
    [
        "Residual({'a': Before, 'b': nn.GELU}['b']())",
        "nn.Sequential(Residual(nn.Linear(4, 4)), Residual(nn.GELU()))",
        "nn.Sequential(nn.Linear(4, 4), Before())",
    ],
)
def test_what_a_residual_is_handed_does_not_write(layer: str) -> None:
    assert not rules_of(HANDED.replace("LAYER", layer))
