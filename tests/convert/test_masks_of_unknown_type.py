"""A number written through an index of which only a run tells whether it is a mask."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from rules.compat.masks import where_leading
from tests.convert.tools import convert

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def put(self, values, where):
        values = values * 2
        values[where] = -1e4
        return values

    def forward(self, x, where):
        return self.put(x, where)
"""


@pytest.mark.parametrize("where", [[[True, False], [False, True]], [True, False], [1, 1]])
def test_number(where: list) -> None:
    result = convert(SOURCE)
    assert result.complete, result.findings
    theirs: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(SOURCE, theirs)
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    x = torch.randn(2, 2)
    want = theirs["M"]()(x, torch.tensor(where))
    got = nnx.jit(lambda x, at: ours["M"](rngs=nnx.Rngs(0))(x, at))(
        jnp.asarray(x.numpy()), jnp.asarray(where)
    )
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-6)


ROWS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(4))

    def forward(self, x, where):
        x = x * 2
        x[where] = self.token.to(x.dtype)
        x[where] -= 1
        x[where] /= self.token
        x[where, 0] = 3.0
        x[where, 1:3] **= 2
        return x
"""


@pytest.mark.parametrize("where", [[[True, False], [False, True]], [True, False], [1, 1]])
def test_one_row_for_all(where: list) -> None:
    result = convert(ROWS)
    assert result.complete, result.findings
    theirs: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(ROWS, theirs)
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    x = torch.randn(2, 2, 4)
    if where == [1, 1]:  # whole numbers are places of the first axis
        x = x[0]
    want = model(x, torch.tensor(where))
    got = nnx.jit(lambda port, x, at: port(x, at))(port, jnp.asarray(x.numpy()), jnp.asarray(where))
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-5)


def test_a_row_for_each_place_is_not_placed() -> None:
    x, mask = jnp.zeros((2, 3, 4)), jnp.zeros((2, 3), bool)
    with pytest.raises(ValueError, match="placed by data"):
        where_leading(mask, jnp.ones((5, 4)), x)
    assert where_leading(~mask, jnp.ones((1, 1, 4)), x).sum() == 24
