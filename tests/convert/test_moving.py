"""What an expression reads is not read before a call that changes it, nor the other way round."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import loaded

SOURCE = """
class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.steps = 1.0
        self.scale = 2.0
        self.kept = [torch.ones(4)]

    def step(self, x):
        self.total += x.abs()
        self.steps += 1
        self.kept[0] = self.kept[0] + x
        return x * 3

    def forward(self, x):
        return {term}
"""
TERMS = [
    "self.step(x) + F.threshold(self.total * 2, 0.1, 0.2)",
    "self.step(x) + F.threshold(x * self.steps, 0.1, 0.2)",
    "self.step(x) + F.threshold(self.kept[0] * 2, 0.1, 0.2)",
    "self.total * 2 + F.threshold(self.step(x), 0.1, 0.2)",
    "x * self.steps + F.threshold(self.step(x), 0.1, 0.2)",
    "self.kept[0] * 2 + F.threshold(self.step(x), 0.1, 0.2)",
    "self.scale * x + F.threshold(self.step(x), 0.1, 0.2)",
    "self.step(x) + F.scaled_dot_product_attention(x[None], x[None] * self.steps, x[None])[0]",
    "self.step(x) + F.scaled_dot_product_attention(self.total[None], x[None], x[:, None].T)[0]",
]


@pytest.mark.parametrize("term", TERMS)
def test_the_order_of_reading_and_changing(term: str) -> None:
    theirs, ours, _ = loaded(SOURCE.format(term=term))
    torch_module, module = theirs["Counted"](), ours["Counted"](rngs=nnx.Rngs(0))
    for seed in range(2):
        x = torch.randn(4, generator=torch.Generator().manual_seed(seed))
        want = torch_module(x)
        np.testing.assert_allclose(module(jnp.asarray(x.numpy())), want.numpy(), rtol=1e-5)


def test_what_nothing_changes_is_given_a_name() -> None:
    _, _, text = loaded(SOURCE.format(term=TERMS[6]))
    assert "h = self.step(x)" in text
