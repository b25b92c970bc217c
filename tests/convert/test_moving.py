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
        self.queue = [torch.ones(4) * i for i in range(7)]
        self.numbers = iter(range(1, 9))

    def step(self, x):
        self.total += x.abs()
        self.steps += 1
        self.kept[0] = self.kept[0] + x
        return x * 3

    def forward(self, x):
        return {term}
"""
TERMS = [
    "self.queue.pop() * x + F.threshold(self.queue[-1] * x, 0.1, 0.2)",
    "self.queue.pop() * x + F.threshold(torch.stack(self.queue).sum(0) * x, 0.1, 0.2)",
    "next(self.numbers) * x + F.threshold(next(self.numbers) * x, 0.1, 0.2)",
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
    _, _, text = loaded(SOURCE.format(term=TERMS[9]))
    assert "h = self.step(x)" in text


RECURSIVE = """
def grow(x: torch.Tensor, n: int):
    if n == 0:
        return x * 1
    return grow(x + 1, n - 1)


def either(x, n):
    return x * 1 if n else [x]


def f(x: torch.Tensor):
    y, z = grow(x, 2), either(x, 2)
    y[1:] = y[:1]
    z[1:] = z[:1]
    return y, z
"""


def test_slices_of_what_a_function_gives_are_written_to() -> None:
    theirs, ours, text = loaded(RECURSIVE)
    assert "y = y.at[1:].set(y[:1])" in text
    x = torch.arange(3.0)
    for got, want in zip(ours["f"](jnp.arange(3.0)), theirs["f"](x), strict=True):
        np.testing.assert_array_equal(got, want.numpy())
