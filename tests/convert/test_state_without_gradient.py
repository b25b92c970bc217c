"""What a forward pass writes to its state under no_grad hands no gradient on, though it is read again."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source
from tests.convert.tools import loaded

HEAD = """
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(4))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update(self, x):
        self.m.mul_(0.9).add_(x.mean(0), alpha=0.1)

    def forward(self, x):
"""
TAIL = "        return x - self.m\n"
UNDER_NO_GRAD = (
    "self.m.mul_(0.9).add_(x.mean(0), alpha=0.1)",
    "self.m.copy_(x.mean(0))",
    "self.m = 0.9 * self.m + 0.1 * x.mean(0)",
    "self.m += x.mean(0)",
    "self.m[0] = x.mean()",
    "self.m[:2].copy_(x.mean(0)[:2])",
    "self.m.lerp_(x.mean(0), 0.1)",
    "self.m.data = x.mean(0)",
    "torch.add(self.m, x.mean(0), out=self.m)",
    "self.m.index_copy_(0, torch.tensor([0, 1]), x.mean(0)[:2])",
    "self.m.zero_().add_(x[0])",
    "a, b = x.mean(0), x.std(0); self.m.copy_(a).div_(b + 1)",
    "self.m, a = x.mean(0), 3",
    "self.m.clamp_(min=x.max())",
    "setattr(self, 'm', x.mean(0))",
    "self.update(x)",
)
OUTSIDE = (
    "self.m.data = x.mean(0)",
    "self.m.data.mul_(0.5).add_(x[0])",
    "self.m.data[0] = x[0, 0]",
    "self.m.data += x[1]",
    "self.m.copy_(x[2].detach())",
    "self.update(x)",
    "self.m = self.m.detach() + x.mean(0)",
    "self.m = x.mean(0); self.m = self.m.detach()",
    "self.m.copy_(x.mean(0))",
)


def _both(source: str) -> tuple[Any, Any]:
    theirs, ours, _ = loaded(source)
    return theirs["M"](), ours["M"](rngs=nnx.Rngs(0))


def _gradients(source: str) -> None:
    original, port = _both(source)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    leaf = torch.tensor(x, requires_grad=True)
    torch.sin(original(leaf)).sum().backward()
    parts = nnx.split(port)

    def loss(given: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(nnx.merge(*parts, copy=True)(given)))

    np.testing.assert_allclose(jax.grad(loss)(jnp.asarray(x)), leaf.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("line", UNDER_NO_GRAD)
def test_under_no_grad(line: str) -> None:
    _gradients(f"{HEAD}        with torch.no_grad():\n            {line}\n{TAIL}")


@pytest.mark.parametrize("line", OUTSIDE)
def test_outside(line: str) -> None:
    _gradients(f"{HEAD}        {line}\n{TAIL}")


def test_what_has_no_gradient_is_written_as_it_is() -> None:
    lines = (
        "        with torch.no_grad():\n            self.steps += 1\n            self.m.mul_(0.9)\n"
    )
    code = convert_source(HEAD.replace(".add_(x.mean(0), alpha=0.1)", "") + lines + TAIL).code
    assert "stop_gradient" not in code
    assert "self.steps[...] += 1" in code
    assert "self.m[...] = self.m[...] * 0.9" in code
