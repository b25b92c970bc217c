"""Modules without a layer of their own that a class derives from beside one of torch's layers."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
class Bottle(nn.Module):
    {body}

    def forward(self, x):
        s = x.size()
        return super(Bottle, self).forward(x.view(-1, s[-1])).view(*s[:-1], -1)


class Layer({bases}):
    {own}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Layer({args})

    def forward(self, x):
        return self.a(x[None] * 0.01)
"""
INIT = "def __init__(self, n{rest}):\n        super().__init__(n{rest})\n        self.n = n"


@pytest.mark.parametrize(
    ("layer", "args"),
    [
        ("nn.Linear", "4, 5"),
        ("nn.Linear", "4, 5, bias=False"),
        ("nn.LayerNorm", "4"),
        ("nn.LayerNorm", "4, eps=1e-3"),
        ("nn.BatchNorm1d", "4"),
        ("nn.LogSoftmax", "dim=-1"),
        ("nn.Sequential", "nn.Linear(4, 4), nn.Tanh()"),
    ],
)
def test_the_layer_is_made_as_without_it(layer: str, args: str) -> None:
    bases = f"Bottle, {layer}"
    check(SOURCE.format(body="", bases=bases, own="pass", args=args))


@pytest.mark.parametrize(
    ("layer", "args", "rest"), [("nn.Linear", "4, 5", ", m"), ("nn.LayerNorm", "4", "")]
)
def test_a_constructor_hands_on_to_the_layer(layer: str, args: str, rest: str) -> None:
    own = INIT.format(rest=rest)
    check(SOURCE.format(body="", bases=f"Bottle, {layer}", own=own, args=args))


def test_a_layer_before_it() -> None:
    own = "def forward(self, x):\n        return super().forward(x) * self.two()"
    body = "def two(self):\n        return 2"
    source = SOURCE.replace("super(Bottle, self).forward(x.view(-1, s[-1]))", "x")
    check(source.format(body=body, bases="nn.LayerNorm, Bottle", own=own, args="4"))


@pytest.mark.parametrize(
    ("body", "bases"),
    [
        (
            "def __init__(self, *args):\n        super().__init__(*args)\n        self.k = 2",
            "Bottle, nn.Linear",
        ),
        (
            "def __init__(self):\n        super().__init__()\n        self.k = 2",
            "nn.Linear, Bottle",
        ),
        ("def mode(self):\n        return self.training", "Bottle, nn.Linear"),
    ],
)
def test_one_constructor_runs_in_the_output(body: str, bases: str) -> None:
    source = SOURCE.format(body=body, bases=bases, own="pass", args="4, 5")
    assert rules_of(source) == ["API005"]
