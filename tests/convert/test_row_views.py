"""Loops that write to the rows of a tensor."""

import textwrap

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import convert, loaded

LOOP = """
def f(a: torch.Tensor, b: torch.Tensor):
    every = [a, b]
    padded = torch.zeros(2, 3, 5)
    mask = torch.ones((2, 5), dtype=torch.bool)
    sizes = a.new_zeros(2)
{loop}
    return padded, mask, sizes
"""


def _same(loop: str) -> str:
    theirs, ours, code = loaded(_source(loop))
    given = torch.randn(2, 4), torch.randn(3, 5)
    want, got = theirs["f"](*given), ours["f"](*(jnp.asarray(x.numpy()) for x in given))
    for one, other in zip(want, got, strict=True):
        np.testing.assert_array_equal(other, one)
    return code


def _source(loop: str) -> str:
    return LOOP.format(loop=textwrap.indent(textwrap.dedent(loop).strip("\n"), "    "))


@pytest.mark.parametrize(
    "loop",
    [
        """
        for x, row, m in zip(every, padded, mask):
            row[: x.shape[0], : x.shape[1]].copy_(x)
            m[: x.shape[1]] = False""",
        """
        for i, (x, row) in enumerate(zip(every, padded)):
            row[: x.shape[0], : x.shape[1]] = x * (i + 1)""",
        """
        for i, row in enumerate(padded):
            row[:2, 1:] += i + 1""",
        """
        for row in padded:
            row[0] = 3
            row[1].fill_(2)
            row[-1] = row[0] + row.sum()""",
        """
        for (x, y), row, size in zip([(a, b), (b, a)], padded, sizes):
            row[: x.shape[0], : x.shape[1]] = x
            size += x.shape[1]
            size.add_(y.shape[0])""",
        """
        for x, row in zip(every, padded):
            place = (slice(0, 2), slice(0, 4))
            row[place] = x[0, 0]""",
    ],
)
def test_rows_that_a_loop_writes_to(loop: str) -> None:
    assert ".at[i" in _same(loop)


def test_the_place_is_named() -> None:
    made = _same("for row in padded:\n    row[:2, 1:] = 1")
    assert "for i in range(len(padded)):" in made
    assert "padded = padded.at[i, :2, 1:].set(1)" in made


@pytest.mark.parametrize(
    "loop",
    [
        """
        for row in padded:
            row[0] = 1
        mask[0] = row[0, 0] > 0""",
        """
        for row in padded:
            row = row * 2
            row[0] = 1""",
        """
        for row in every:
            row[0] = 1""",
        """
        kept = []
        for row in padded:
            kept.append(row)
            row[0] = 1
        padded = kept[0]""",
    ],
)
def test_rows_that_somebody_else_knows_stay(loop: str) -> None:
    result = convert(_source(loop))
    assert "padded.at" not in result.code
    if result.complete:
        _same(loop)


def test_a_loop_ends_with_the_shortest() -> None:
    code = _same(
        """
        few = a.new_zeros(1)
        for x, row, size in zip(every + every, padded, few):
            row[: x.shape[0], : x.shape[1]] = x
            size += 1
        """
    )
    assert "range(min(len(padded), len(few)))" in code
