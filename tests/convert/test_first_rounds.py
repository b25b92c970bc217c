"""``out = x; for layer in self.body: out = layer(out)``: the first layer makes a new tensor, which others may overwrite."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """
import functools


class M(nn.Module):
    def __init__(self, act="relu", times=2):
        super().__init__()
        self.body = nn.ModuleList()
        {first}
        for _ in range(times):
            if act == "relu":
                activation = nn.ReLU(inplace=True)
            else:
                activation = nn.PReLU()
            self.body.append(activation)
            self.body.append(nn.Linear(4, 4))
        self.body.append(nn.LeakyReLU(0.1, inplace=True))
        {more}

    def forward(self, x):
        x = x * 1.5
        out = x
        {loop}
        out += x
        return out
"""
FIRST = "self.body.append(nn.Linear(4, 4))"
LOOPS = [
    "for layer in self.body:\n            out = layer(out)",
    "for i in range(len(self.body)):\n            out = self.body[i](out)",
    "for i in range(0, len(self.body)):\n            out = self.body[i](out)",
]


def _net(loop: str = LOOPS[0], first: str = FIRST, more: str = "pass") -> str:
    return NET.format(loop=loop, first=first, more=more)


@pytest.mark.parametrize("act", ["relu", "prelu"])
@pytest.mark.parametrize("loop", LOOPS)
def test_what_works_in_place_gets_what_another_made(loop: str, act: str) -> None:
    check(_net(loop), act)


@pytest.mark.parametrize(
    "first",
    [
        "pass",
        "self.body.append(nn.Identity())",
        "self.body.append(nn.Dropout(0.5))",
        "self.body.append(nn.ReLU(inplace=True))",
        "make = functools.partial(nn.ReLU, inplace=True)\n        self.body.append(make())",
        "if times > 2:\n            self.body.append(nn.Linear(4, 4))",
        "self.body.append(nn.Linear(4, 4) if times else nn.Identity())",
        "for _ in range(times):\n            self.body.append(nn.Linear(4, 4))",
    ],
)
def test_a_first_layer_that_may_hand_on_its_input(first: str) -> None:
    assert {"MUT001", "MUT002"} & set(rules_of(_net(first=first)))


@pytest.mark.parametrize(
    "loop",
    [
        "for layer in self.body[1:]:\n            out = layer(out)",
        "for i in range(1, len(self.body)):\n            out = self.body[i](out)",
        "for layer in self.body:\n            out = layer(out)\n            out = x",
        "for layer in self.body:\n            if layer is not None:\n                out = layer(out)",
        "for i in range(len(self.body)):\n            out = self.body[i - 1](out)",
    ],
)
def test_a_loop_that_does_not_begin_with_it(loop: str) -> None:
    assert {"MUT001", "MUT002"} & set(rules_of(_net(loop)))


@pytest.mark.parametrize(
    "more",
    [
        "self.body.insert(0, nn.ReLU(inplace=True))",
        "self.body[0] = nn.ReLU(inplace=True)",
        "self.body = self.body[1:]",
        "self.body = nn.ModuleList(reversed(self.body))",
    ],
)
def test_another_first_layer(more: str) -> None:
    assert rules_of(_net(more=more))


def test_an_heir_may_put_another_first() -> None:
    heir = "\n\nclass N(M):\n    def __init__(self):\n        super().__init__()\n        self.body.insert(0, nn.ReLU(inplace=True))\n"
    assert rules_of(_net() + heir)
