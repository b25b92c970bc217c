"""Axes of a reduction that only a caller tells: one, several, or none, which are all in torch."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from rules.compat.words import as_axes
from tests.convert.tools import X, body, check, loaded

LINES = [
    "y.sum(self.dims)",
    "y.mean(self.dims, keepdim=True)",
    "torch.amax(y, self.dims)",
    "torch.var(y, dim=self.dims)",
    "(y > 0).any(dim=self.dims)",
    "torch.std_mean(y, dim=self.dims)[0]",
]
SOURCE = """
class M(nn.Module):
    def __init__(self, {argument}):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.dims = dims

    def forward(self, x):
        y = self.l(x)
        return {line}
"""


@pytest.mark.parametrize("argument", ["dims", "dims=(1,)", "dims=None"])
def test_a_caller_gives_the_axes(argument: str) -> None:
    for dims in ((), 1, (0, 1), [0], [], (-1,)):
        check(SOURCE.format(argument=argument, line=LINES[1]), dims)


@pytest.mark.parametrize("line", LINES)
def test_none_are_all(line: str) -> None:
    for dims in ((), 1, [0, 1]):
        check(SOURCE.format(argument="dims", line=line), dims)


def test_what_is_known_is_written_as_it_is() -> None:
    lines = "    return x.mean(dims)\n"
    assert "axis=dims" in body(f"def f(x: torch.Tensor, dims: int):\n{lines}", "def f")
    assert "axis=dims" in body(f"def f(x: torch.Tensor, dims=-1):\n{lines}", "def f")
    filled = f"    dims = (0, 1)\n{lines}"
    assert "axis=dims" in body(f"def f(x: torch.Tensor):\n{filled}", "def f")
    several = body(f"def f(x: torch.Tensor, dims: list[int]):\n{lines}", "def f")
    assert "axis=tuple(dims) or None" in several


def test_as_axes() -> None:
    for dims, axis in (
        ((), None),
        ([], None),
        (None, None),
        (0, 0),
        ([0, 1], (0, 1)),
        ((-1,), (-1,)),
    ):
        assert as_axes(dims) == axis
    theirs, ours, _ = loaded("def f(x: torch.Tensor, dims):\n    return x.sum(dims)\n")
    for dims in ((), 0, [0, 1]):
        assert ours["f"](jnp.asarray(X.numpy()), dims).shape == theirs["f"](X, dims).shape
