"""A Sequential hands a tuple that one of its layers gives to the next as it is."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        first, second = x if type(x) is tuple else (x, x)
        return self.lin(first), second


class Join(nn.Module):
    def forward(self, pair):
        return pair[0] * pair[1]


class M(nn.Module):
    def __init__(self, n=2):
        super().__init__()
LAYERS

    def forward(self, x):
        return CALL
"""
WAYS = {
    "appended": ("layers = [Pair()]\nlayers.append(Join())\nself.net = nn.Sequential(*layers)", ""),
    "added": (
        "layers = [Pair()]\nfor _ in range(n):\n    layers += [Pair()]\nlayers += [Join(), nn.Linear(4, 4)]\n"
        "self.net = nn.Sequential(*layers)",
        "",
    ),
    "nested": ("self.net = nn.Sequential(nn.Sequential(Pair()), Join())", ""),
    "given": ("self.net = nn.Sequential(Pair(), Join())", ""),
    "a slice": ("self.net = nn.Sequential(nn.Linear(4, 4), Pair(), Join())", "self.net[1:](x)"),
}


@pytest.mark.parametrize(("layers", "call"), WAYS.values(), ids=WAYS)
def test_a_tuple_stays_whole(layers: str, call: str) -> None:
    indented = "\n".join(" " * 8 + line for line in layers.splitlines())
    check(SOURCE.replace("LAYERS", indented).replace("CALL", call or "self.net(x)"))
