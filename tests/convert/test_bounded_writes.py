"""Numbers that are written within bounds which only the data tells: masks made of lengths, row by row."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from rules.compat.indexing import set_within
from tests.convert.tools import both, rules_of

ROWS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, lengths{hint}):
        y = x * 2
        for i, n in enumerate(lengths):
            {line}
        return y * x
"""
LINES = (
    "y[i, :n] = 1",
    "y[i, n - 1:] = self.v",
    "y[i][n:] = 0.5",
    "y[i, n:].fill_(3)",
    "y[i, :lengths[i]].zero_()",
    "y[..., -n:] = i",
    "y[i, lengths[i].item():] = 1",
    "y[i, : int(lengths[i])] = 1",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("hint", ["", ": torch.Tensor"])
def test_rows_are_written_up_to_a_length(line: str, hint: str) -> None:
    source = ROWS.format(line=line, hint=hint)
    assert [one for one in rules_of(source) if one.startswith("DYN003") and not hint] == []
    model, port, code = both(source)
    assert "set_within(" in code
    x, lengths = torch.linspace(-1, 1, 12).reshape(3, 4), torch.tensor([2, 4, 1])
    leaf = x.clone().requires_grad_()
    want = model(leaf, lengths)
    want.sum().backward()
    arrays = jnp.asarray(x.numpy()), jnp.asarray(lengths.numpy())
    np.testing.assert_allclose(nnx.jit(lambda m, *a: m(*a))(port, *arrays), want.detach(), 1e-6)
    graph, state = nnx.split(port)
    slope = jax.jit(jax.grad(lambda v: nnx.merge(graph, state)(v, arrays[1]).sum()))(arrays[0])
    assert leaf.grad is not None
    np.testing.assert_allclose(slope, leaf.grad, 1e-6)


OF_A_METHOD = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 2.0

    def mask(self, x, lengths):
        m = torch.zeros(x.size(0), x.size(1))
        for i, n in enumerate(lengths):
            m[i, :n] = 1
        return m

    def forward(self, x, lengths):
        return x * self.mask(x, lengths) * self.scale
"""


def test_a_method_that_makes_the_mask() -> None:
    model, port, code = both(OF_A_METHOD)
    assert "set_within(" in code
    x, lengths = torch.linspace(-1, 1, 12).reshape(3, 4), torch.tensor([2, 4, 1])
    arrays = jnp.asarray(x.numpy()), jnp.asarray(lengths.numpy())
    np.testing.assert_allclose(nnx.jit(lambda m, *a: m(*a))(port, *arrays), model(x, lengths))


def test_what_is_read_within_such_bounds_has_no_shape() -> None:
    source = ROWS.format(line="y[i, :n] = x[i, :n]", hint=": torch.Tensor")
    assert "DYN003" in rules_of(source)
    source = ROWS.format(line="y[i, :n] = (x > 0)[i, :n].sum()", hint=": torch.Tensor")
    assert "DYN003" in rules_of(source)


@pytest.mark.parametrize(
    "bounds", [(0, 2), (1, None), (None, -1), (-3, 9), (3, 1), (-9, -2), (5, 7)]
)
def test_bounds_are_read_as_python_reads_them(bounds: tuple[int | None, int | None]) -> None:
    start, stop = bounds
    x = torch.arange(24).reshape(2, 3, 4)
    want = x.clone()
    want[1, :, start:stop] = 7
    given = [None if one is None else jnp.asarray(one) for one in bounds]
    write = jax.jit(lambda a, *b: set_within(a, (1, slice(None), slice(*b)), 7))
    np.testing.assert_array_equal(write(jnp.asarray(x.numpy()), *given), want)
    want = x.clone()
    want[start:stop, ..., 0] = -1
    write = jax.jit(lambda a, *b: set_within(a, (slice(*b), ..., 0), -1))
    np.testing.assert_array_equal(write(jnp.asarray(x.numpy()), *given), want)
    want = x.clone() > 0
    want[:, start:stop, 1:3] = 0
    made = set_within(jnp.asarray(x.numpy()) > 0, (slice(None), slice(start, stop), slice(1, 3)), 0)
    np.testing.assert_array_equal(made, want)
