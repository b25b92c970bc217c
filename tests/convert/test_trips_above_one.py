"""``for j in range(1, n)`` where one of n has returned: what it binds is a tensor of its own."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from tests.convert.tools import X, both, convert, rules_of

FUSED = """
class M(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.n = n
        self.relu = nn.ReLU(True)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])

    def forward(self, x):
        FIRST
        found = []
        for i in range(self.n):
            y = x if i == 0 else self.layers[i](x)
            for j in range(1, self.n):
                y = y + self.layers[j](x)
            found.append(self.relu(y))
        return found[0] + found[-1] + x
"""


@pytest.mark.parametrize("first", ["== 1", "<= 1", "< 2"])
def test_a_count_above_one_runs(first: str) -> None:
    source = FUSED.replace("FIRST", f"if self.n {first}:\n            return x")
    module, port, _ = both(source)
    # where none is not ruled out, it is said that it is taken for no case
    said = [found.rule for found in convert(source).findings if "taken to run" in found.message]
    assert said == (["MUT001"] if first == "== 1" else [])
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), module(X.clone()).detach(), atol=1e-5)


@pytest.mark.parametrize(
    "first",
    [
        "pass",
        "if self.n == 1:\n            print(x.shape)",
        "if self.n == 0:\n            return x",
        "if self.n == 1:\n            return x\n        self.n = len(x.shape) - 1",
    ],
)
def test_a_count_that_may_be_one_may_not(first: str) -> None:
    assert "MUT001" in rules_of(FUSED.replace("FIRST", first))


def test_who_returns_after_the_loop_has_not_returned_before_it() -> None:
    late = "if self.n == 1:\n            return x\n        return found[0]"
    source = FUSED.replace("FIRST", "pass").replace("return found[0]", late)
    assert "MUT001" in rules_of(source)
