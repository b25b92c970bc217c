"""``self.a.weight is self.b.weight``: what is asked of a parameter itself is asked of the Variable."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4, bias=False)
        self.b = nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight
        self.c = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.w = nn.Parameter(torch.ones(4))
        self.none = None

    def forward(self, x):
        x = self.norm(self.c(self.b(self.a(x)))) * self.w
        return x * (2 if TEST else 3)
"""


@pytest.mark.parametrize(
    "test",
    [
        "self.a.weight is self.b.weight",
        "self.a.weight is not self.c.weight",
        "self.a.weight is self.norm.weight",
        "self.w is self.a.weight",
        "self.a.weight is self.w is self.w",
        "self.a.weight is self.b.weight and self.a.bias is None",
        "id(self.a.weight) == id(self.b.weight)",
        "any(p is self.w for p in self.parameters())",
        "self.none is self.a.bias",
        "self.c.bias is not None",
    ],
)
def test_a_parameter_is_another(test: str) -> None:
    check(NET.replace("TEST", test))


@pytest.mark.parametrize(
    "test",
    [
        "w is self.a.weight",
        "next(self.a.parameters()) is self.a.weight",
        "w is None or self.w is w",
    ],
)
def test_what_may_be_its_value_is_a_finding(test: str) -> None:
    source = NET.replace("TEST", test).replace(
        "        return", "        w = self.a.weight\n        return"
    )
    assert rules_of(source)


SHARED = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(4, 4)
        self.head = nn.Linear(4, 4, bias=False)
        TIE

    def forward(self, x):
        x = self.head(self.embed(x))
        return x * 2 if self.head.weight is self.embed.weight else x


def same(one, other):
    return one.weight is other.weight
"""


@pytest.mark.parametrize("tie", ["self.head.weight = self.embed.weight", "pass"])
def test_layers_that_flax_lays_out_otherwise_are_a_finding(tie: str) -> None:
    assert rules_of(SHARED.replace("TIE", tie)).count("API009") >= 2
