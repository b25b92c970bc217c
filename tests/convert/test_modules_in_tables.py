"""Modules in plain dicts, tuples and nested lists, which neither torch nor Flax looks into."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, loaded, rules_of

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        {line}

    def forward(self, x):
        {use}
        return x
"""


@pytest.mark.parametrize(
    ("line", "use"),
    [
        (
            'self.paths = [("a", self.a), ("b", self.b)]',
            "x = sum(path(x) for name, path in self.paths)",
        ),
        ("self.pair = (self.a, 3)", "x = self.pair[0](x) * self.pair[1]"),
        (
            "self.pairs = [[self.a, self.b], [self.b, self.a]]",
            "x = self.pairs[1][0](self.pairs[0][0](x))",
        ),
        ('self.acts = {"relu": nn.ReLU(), "n": 2}', 'x = self.acts["relu"](x) * self.acts["n"]'),
    ],
)
def test_what_the_module_has_under_another_name_may_be_listed(line: str, use: str) -> None:
    check(MODEL.format(line=line, use=use))


@pytest.mark.parametrize(
    "line",
    [
        "self.pair = (nn.Linear(4, 4), nn.Linear(4, 4))",
        'self.pairs = [("c", nn.Linear(4, 4))]',
        'self.kept = {"c": nn.Linear(4, 4), "n": 2}',
        "self.kept = dict(c=nn.Linear(4, 4), n=2)",
        "self.kept = {i: nn.Linear(4, 4) for i in range(2)}",
        "self.kept = {}\n        for i in range(2):\n            self.kept[i] = nn.Linear(4, 4)",
    ],
)
def test_other_modules_are_found(line: str) -> None:
    assert rules_of(MODEL.format(line=line, use="pass")) == ["API008"]


def test_children_by_name_are_found() -> None:
    assert rules_of(MODEL.format(line="self.d = dict(self.named_children())", use="pass")) == [
        "API008"
    ]


def test_a_list_of_slices_is_an_index_like_a_tuple() -> None:
    use = (
        "rows = [slice(1, None)]\n        while len(rows) < x.ndim:\n"
        "            rows = rows + [slice(None)]\n        x = x[rows]"
    )
    check(MODEL.format(line="pass", use=use))


def test_a_list_that_becomes_a_sequential_under_the_same_name() -> None:
    source = """
def get_norm(kind="batch"):
    if kind == "batch":
        return nn.BatchNorm1d

    def norm(n):
        return nn.Identity()

    return norm


class M(nn.Module):
    def __init__(self, norm=nn.BatchNorm1d):
        super().__init__()
        self.net = [nn.Linear(4, 4), norm(4), nn.LeakyReLU(0.2, True)]
        self.net = nn.Sequential(*self.net)

    def forward(self, x):
        return self.net(x)


def make(kind):
    return M(get_norm(kind))
"""
    check(source)


def test_a_list_of_numbers_that_are_called_for_is_an_index_of_its_own() -> None:
    source = "def f(x: torch.Tensor):\n    rest = slice(None)\n    return x[[len(x) - 1, abs(-1)]][:, rest]\n"
    theirs, ours, _ = loaded(source)
    x = torch.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(ours["f"](jnp.asarray(x.numpy())), theirs["f"](x))
