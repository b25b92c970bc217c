"""A number written through an index of which only a run tells whether it is a mask."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

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
