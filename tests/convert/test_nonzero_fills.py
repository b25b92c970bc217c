"""Rows that are looked up by ``nonzero`` for nothing but to be filled, as the Annotated Transformer smooths labels."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import convert, loaded, rules_of

SOURCE = """
def f(x: torch.Tensor, t: torch.LongTensor):
    y = x * 1
    y.scatter_(1, t.unsqueeze(1), 0.9)
    rows = LOOKUP
    LINES
    return y
"""


def _source(lines: str, lookup: str = "torch.nonzero(t == 0)") -> str:
    return SOURCE.replace("LOOKUP", lookup).replace("LINES", lines.replace("\n", "\n    "))


@pytest.mark.parametrize(
    ("lookup", "lines"),
    [
        ("torch.nonzero(t == 0)", "if rows.dim() > 0:\n    y.index_fill_(0, rows.squeeze(), 0.0)"),
        ("(t.data == 0).nonzero()", "if len(rows) > 0:\n    y.index_fill_(0, rows.view(-1), 2)"),
        ("torch.nonzero(t < 2)", "y.index_fill_(0, rows.squeeze(1), 0.5)"),
        ("torch.nonzero(t != 1)", "if rows.numel():\n    y.index_fill_(0, rows.flatten(), -1.0)"),
    ],
)
def test_values(lookup: str, lines: str) -> None:
    theirs, ours, _ = loaded(_source(lines, lookup))
    assert convert(_source(lines, lookup)).findings == []
    run = jax.jit(ours["f"])
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    for places in ([0, 1, 0, 2], [1, 1, 1, 1], [2, 1, 0, 1], [0, 0, 0, 0]):
        want = theirs["f"](torch.tensor(x), torch.tensor(places))
        np.testing.assert_array_equal(run(jnp.asarray(x), jnp.array(places)), want)


@pytest.mark.parametrize(
    ("lookup", "lines"),
    [
        ("torch.nonzero(t)", "y.index_fill_(0, rows.squeeze(), 0.0)"),
        ("torch.nonzero(x > 0)", "y.index_fill_(0, rows[:, 0], 0.0)"),
        ("torch.nonzero(t == 0)", "y.index_fill_(1, rows.squeeze(), 0.0)"),
        ("torch.nonzero(t == 0)", "y.index_fill_(0, rows.squeeze(), y.mean())"),
        ("torch.nonzero(t == 0)", "y.index_fill_(0, rows.squeeze(), 0.0)\ny = y + len(rows)"),
        ("torch.nonzero(t == 0)", "if rows.sum() > 0:\n    y.index_fill_(0, rows.squeeze(), 0.0)"),
        ("torch.nonzero(t == 0)", "if len(rows) > 1:\n    y.index_fill_(0, rows.squeeze(), 0.0)"),
        ("torch.nonzero(t == 0)", "if len(rows) > 0:\n    y = y + 1"),
        (
            "torch.nonzero(t == 0)",
            "if len(rows) > 0:\n    y.index_fill_(0, rows.squeeze(), 0.0)\nelse:\n    y = y * 2",
        ),
        ("torch.nonzero(t == 0)", "y.index_fill_(0, rows.squeeze() - 1, 0.0)"),
        ("torch.nonzero(t == 0)", "return rows"),
    ],
)
def test_other_uses_are_a_finding(lookup: str, lines: str) -> None:
    assert rules_of(_source(lines, lookup))


def test_a_test_around_more_than_fills_is_a_finding() -> None:
    lines = "if len(rows) > 0:\n    y.index_fill_(0, rows.squeeze(), 0.0)\n    y = y + 1"
    assert rules_of(_source(lines))
