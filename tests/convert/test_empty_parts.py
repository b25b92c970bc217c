"""Vectors of no elements that are joined with tensors of any rank: torch leaves them out."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import X, both, function, loaded

EMPTY = [
    "torch.tensor([])",
    "torch.Tensor()",
    "torch.empty(0)",
    "torch.zeros((0,), dtype=x.dtype)",
    "x.new_zeros(0)",
    "torch.empty(0).to(dtype=x.dtype, device=x.device)",
    "torch.LongTensor([])",
]


@pytest.mark.parametrize("empty", EMPTY)
def test_what_is_gathered_in_a_loop_starts_with_nothing(empty: str) -> None:
    source = f"""
def f(x, rows: bool):
    out = {empty}
    for i in range(3):
        out = torch.cat([out, x * i], dim=0 if rows else -1)
    return out, torch.concat(({empty}, {empty})), torch.cat([{empty}, torch.ones(2, 2).long()], 1)
"""
    theirs, ours, _ = loaded(source)
    for rows in (True, False):
        wanted = theirs["f"](X, rows)
        for found, want in zip(ours["f"](jnp.asarray(X.numpy()), rows), wanted, strict=True):
            assert str(found.dtype).replace("int32", "int64") == str(want.dtype)[6:]
            np.testing.assert_allclose(found, want)


def test_nothing_is_handed_to_a_method() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def part(self, x, memory):
        return self.l(torch.cat([x, memory]))

    def forward(self, x, deep: bool = False):
        if deep:
            memory = x[:2]
        else:
            memory = torch.empty(0).to(dtype=x.dtype)
        return self.part(x, memory)
"""
    model, port, code = both(source)
    assert "joined(" in code
    for deep in (True, False):
        found = nnx.jit(lambda m, x, d=deep: m(x, d))(port, jnp.asarray(X.numpy()))
        np.testing.assert_allclose(found, model(X, deep).detach(), atol=1e-6)


def test_a_file_without_such_vectors_joins_as_it_did() -> None:
    assert function("return torch.cat([x, y], 1)") == "return jnp.concatenate([x, y], axis=1)"
    lines = ("z = torch.zeros(0, 3)", "return torch.cat([x, z]), torch.arange(0, 4)")
    assert "joined" not in function(*lines)
