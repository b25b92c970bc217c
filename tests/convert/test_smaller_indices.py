"""``scatter`` and its kin with an index that is smaller than what is written, which torch cuts to its shape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from rules.compat.indexing import at_places
from tests.convert.tools import body, check, compare_gradients, loaded

INDICES = [
    [[0, 2], [1, 3], [3, 0]],
    [[0, 1, 2, 3, 3]],
    [[0], [1], [3], [2]],
    [[0, 1, 2, 3, 0]] * 4,
]


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize(
    "line",
    [
        "x.gather(1, i)",
        "torch.zeros_like(x).scatter(1, i, x)",
        "torch.zeros_like(x).scatter_(1, index=i, src=x * 2)",
        "torch.zeros(4, 5).scatter_add(0, i, x)",
        "torch.ones(4, 5).scatter_add_(1, i, x * x)",
        "torch.ones_like(x).scatter_reduce(1, i, x, 'amax')",
        "torch.ones_like(x).scatter_reduce(0, i, x, 'mean', include_self=False)",
        "torch.ones_like(x).scatter(1, i, x, reduce='multiply')",
        "x.scatter(1, i, 2.0)",
        "x.scatter(1, i, (x if len(i) > 9 else x * 2)[:, : i.shape[1]])",
    ],
)
def test_what_is_written_is_cut_to_the_index(line: str, index: list[list[int]]) -> None:
    source = f"def f(x: torch.Tensor, i: torch.LongTensor):\n    return {line}\n"
    theirs, ours, _ = loaded(source)
    x, i = torch.rand(4, 5, generator=torch.Generator().manual_seed(0)), torch.tensor(index)
    if "gather" in line or "2.0" in line:  # torch has no gradient of what is cut
        compare_gradients(source, x, i)
    got = jax.jit(ours["f"])(jnp.asarray(x.numpy()), jnp.asarray(i.numpy()))
    np.testing.assert_allclose(got, theirs["f"](x, i), rtol=1e-6)


@pytest.mark.parametrize(
    ("lines", "cut"),
    [
        ("x.scatter_add(0, i.expand_as(y), y)", False),
        ("x.scatter(0, i, torch.ones_like(i, dtype=x.dtype))", False),
        ("j = i[:, None].expand_as(y); x.scatter_add(0, j, y)", False),
        ("j = i.expand_as(y); y = y[:, None]; x.scatter_add(0, j, y)", True),
        ("j = i.expand_as(y); j = j[0]; x.scatter_add(0, j, y)", True),
        ("x.scatter_add(0, i.expand_as(x), y)", True),
        ("x.scatter_add(0, i, y)", True),
    ],
)
def test_nothing_is_cut_of_what_has_the_shape_of_the_index(lines: str, cut: bool) -> None:
    *before, last = lines.split("; ")
    text = "".join(f"    {line}\n" for line in (*before, f"return {last}"))
    head = "def f(x: torch.Tensor, y: torch.Tensor, i: torch.LongTensor):\n"
    assert ("at_places(" in body(head + text, "def f")) is cut


def test_at_places() -> None:
    x = jnp.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(at_places(x, jnp.zeros((2, 3), int)), x[:2, :3])


def test_what_parameters_are_trained_through_has_the_shape_of_the_index() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        i = torch.tensor([[0, 1, 2, 3]] * 3)
        y = self.l(x) * 2
        y = torch.zeros(3, 4).scatter_add(1, i, y)
        return torch.zeros(3, 4).scatter_add(1, i[:, :2], x) + y
"""
    code = check(source)
    assert ".add(y)" in code
    assert "at_places(x, " in code
