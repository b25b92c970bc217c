"""Slices of one tensor that share nothing: one of them may be written in place while the others are kept."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.convert.tools import check, rules_of

BOUNDS = ["", "0", "1", "2", "3", "-1", "-2", "n", "m", "2 * n", "n + m", "n + 1", "n * 2 + m"]
STARTS_AND_ENDS = [f"{a}:{b}{c}" for a in BOUNDS for b in BOUNDS for c in ("", ":2", ":3")]
INDICES = [*STARTS_AND_ENDS, "0", "1", "2", "-1", "-2", "n", "n + 1", "2 * n"]
FORMS = ["{}", "..., {}", ":, {}", "{}, :1", "0, {}", "{}, None"]


def written(first: str, second: str) -> list[str]:
    return rules_of(
        "def f(x: torch.Tensor, n: int, m: int):\n    x = x * 2\n"
        f"    a = x[{first}]\n    b = x[{second}]\n    a += 1\n    return a, b\n"
    )


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMS), st.sampled_from(INDICES), st.sampled_from(INDICES))
def test_what_is_said_to_share_nothing_shares_nothing(form: str, one: str, other: str) -> None:
    first, second = form.format(one), form.format(other)
    if written(first, second):
        return
    places = np.arange(100).reshape(10, 10)
    for n, m in itertools.product(range(5), repeat=2):
        taken = [eval(f"x[{index}]", {"x": places, "n": n, "m": m}) for index in (first, second)]
        assert not set(np.ravel(taken[0])) & set(np.ravel(taken[1])), (first, second, n, m)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("..., :n", "..., n:"),
        ("..., :n", "..., n : 2 * n"),
        (":, n:", ":, :n"),
        (":n", "n + m :"),
        ("::2", "1::2"),
        (":, 0", ":, 1:"),
        (":, :-1", ":, -1"),
        ("..., 2 * n][..., None", "..., 2 * n + 1][..., None"),
        ("..., :n", "..., 2 * n"),
        (": x.shape[0] // 2", "x.shape[0] // 2 :"),
        (": x.size(0)", "x.size(0) :"),
    ],
)
def test_apart(first: str, second: str) -> None:
    assert written(first, second) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (":3", "2:"),
        (":n", "m:"),
        (":, :n", "..., n:, :"),
        ("None, :n", "n:"),
        (":n", "n - 1 :"),
        ("::2", "1::3"),
        (":-2", "3:"),
        (":n", "..., n:"),
        ("n:", "int(x.sum()) :"),
    ],
)
def test_not_known_to_be_apart(first: str, second: str) -> None:
    assert "MUT001" in written(first, second)


def test_a_bound_of_which_nothing_is_known() -> None:
    source = "def f(x: torch.Tensor, n):\n    x = x * 2\n    a = x[:n.k]\n    b = x[n.k:]\n    a += 1\n    return a, b\n"
    assert rules_of(source) == ["MUT001"]  # where it is None, both are all of it


def test_the_slices_stand_one_after_the_other() -> None:
    between = (
        "def f(x: torch.Tensor, n: int):\n    x = x * 2\n    a = x[:n]\n    x = x.flip(0)\n"
        "    b = x[n:]\n    a += 1\n    return a, b\n"
    )
    assert rules_of(between) == []  # flip() copies
    again = "def f(x: torch.Tensor, n: int):\n    x = x * 2\n    a = x[:n]\n    n = n - 1\n    b = x[n:]\n    a += 1\n    return a, b\n"
    assert rules_of(again) == ["MUT001"]


def test_bins_of_a_spline() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self, bins: int = 2):
        super().__init__()
        self.bins = bins
        self.out = nn.Linear(4, 3 * bins + 1)

    def forward(self, x):
        p = self.out(x)
        widths = p[..., : self.bins]
        heights = p[..., self.bins : 2 * self.bins]
        slopes = p[..., 2 * self.bins :]
        widths /= 3
        heights /= 2
        even, odd = heights[..., ::2], heights[..., 1::2]
        odd += 1
        return torch.cat([even, odd, widths, slopes], dim=-1)
"""
    )
