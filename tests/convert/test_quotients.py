"""Quotients whose divisor is kept from 0 by a number that float32 cannot square."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, module

SOURCE = """
EPS = 1e-30

class M(nn.Module):
    def __init__(self, eps=1e-25):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        y = (x * self.scale).relu()
        total = y.sum(1, keepdim=True) + EPS
        return {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "y / (y.sum(1, keepdim=True) + 1e-20)",
        "y / total",
        "y / (self.eps + y.sum(1, keepdim=True))",
        "y / y.sum(1, keepdim=True).clamp(min=1e-24)",
        "y / torch.maximum(y, torch.tensor(1e-21))",
        "0 / total + y",
    ],
)
def test_a_divisor_of_zero_and_a_tiny_number_has_the_gradient_of_torch(line: str) -> None:
    model, port, code = both(SOURCE.format(line))
    assert "quotient(" in code
    x = torch.tensor([[1.0, -1, 2, 3], [-1, -2, -3, -4]], requires_grad=True)
    out = model(x)
    (out * torch.arange(4.0)).sum().backward()

    def loss(port: nnx.Module, x: jnp.ndarray) -> jnp.ndarray:
        return (port(x) * jnp.arange(4.0)).sum()  # type: ignore[operator]

    given = jnp.asarray(x.detach().numpy())
    np.testing.assert_allclose(port(given), out.detach().numpy(), rtol=1e-6)
    of_port, of_x = nnx.grad(loss, argnums=(0, 1))(port, given)
    np.testing.assert_allclose(of_x, x.grad.numpy(), rtol=1e-5, atol=1e-6)
    want = model.scale.grad.numpy()
    np.testing.assert_allclose(of_port.scale[...], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "line",
    ["x / (x.sum() + 1e-8)", "x / (x.exp() * 1e-20)", "x / 1e-20", "x / len(x) + 1e-20"],
)
def test_other_quotients_stay(line: str) -> None:
    assert "quotient" not in module("self.dim = dim", f"return {line}")
