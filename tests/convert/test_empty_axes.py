"""Reductions over no axes: torch takes an empty ``dim`` for all of them, JAX for none."""

from __future__ import annotations

import pytest

from tests.convert.tools import body, check

SOURCE = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.dims = list(range(2, 2))

    def forward(self, x):
        y = self.l(x)
        dims = tuple(range(2, x.dim()))
        return {line}
"""
LINES = [
    "y.sum(dims)",
    "y.mean(self.dims)",
    "y.mean(dim=list(range(2, x.dim())), keepdim=True)",
    "torch.var(y, self.dims)",
    "y.norm(dim=self.dims)",
    "y.norm(dim=())",
    "torch.linalg.vector_norm(y, 3, dim=dims)",
    "y.amax(dims)",
    "(y > 0).any(self.dims)",
    "(y > 0).all(dim=())",
    "torch.nansum(y, dims)",
    "y.sum(dim=())",
]


@pytest.mark.parametrize("line", LINES)
def test_an_empty_dim(line: str) -> None:
    check(SOURCE.format(line=line))


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("x.mean(dim=tuple(range(1, x.dim())))", "axis=tuple(range(1, x.ndim)) or None"),
        ("x.mean([0] + list(range(2, x.dim())))", "axis=tuple([0] + list(range(2, x.ndim)))"),
        ("x.mean((1, 2))", "axis=(1, 2)"),
    ],
)
def test_or_none_stands_only_where_there_may_be_no_axes(line: str, port: str) -> None:
    assert port in body(f"def f(x: torch.Tensor):\n    return {line}\n", "def f")


def test_a_list_that_is_filled_in_the_function() -> None:
    lines = "    dims = [0]\n    dims.append(2)\n    return x.mean(dims)\n"
    assert "axis=tuple(dims))" in body(f"def f(x: torch.Tensor):\n{lines}", "def f")
    shorter = lines.replace("append(2)", "pop()")
    assert "axis=tuple(dims) or None)" in body(f"def f(x: torch.Tensor):\n{shorter}", "def f")


def test_an_argument_may_be_empty_though_the_function_fills_it_in_a_branch() -> None:
    lines = "    if len(dims) > 2:\n        dims = [1]\n    return x.mean(dims)\n"
    source = f"def f(x: torch.Tensor, dims: list[int]):\n{lines}"
    assert "axis=tuple(dims) or None)" in body(source, "def f")
