"""Gradients that JAX's derivative of a quotient loses are told and no difference; a wrong one is one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.division import DividesAsJax
from numerics.report import Report
from numerics.verify import Settings, verify

FAR = np.array([[46.0, 45.0, 44.5, 46.5]], np.float32)


class TorchSoftmax(torch.nn.Module):
    """Written out, without the maximum taken away."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.exp(x)
        return weights / weights.sum(-1, keepdim=True)


class FlaxSoftmax(nnx.Module):
    """The same; ``wrong`` forgets the part of the gradient that goes through the sum."""

    def __init__(self, wrong: bool = False) -> None:
        self.wrong = wrong

    def __call__(self, x: jax.Array) -> jax.Array:
        weights = jnp.exp(x)
        total = weights.sum(-1, keepdims=True)
        return weights / (jax.lax.stop_gradient(total) if self.wrong else total)


def run(port: nnx.Module, inputs: Any) -> Report:
    return verify(
        TorchSoftmax(),
        port,
        [inputs],
        load=lambda module, state: None,
        dump=lambda module, like=None: {},
        settings=Settings(examples=1, train=False),
    )


def test_what_underflows_in_any_port_is_told() -> None:
    report = run(FlaxSoftmax(), FAR)
    assert any("y ** -2" in note for note in report.notes)
    assert report.failure is None
    assert report.verdict == "not compared"  # in this one example there is no gradient to compare


def test_a_missing_part_of_a_gradient_is_a_difference() -> None:
    report = run(FlaxSoftmax(wrong=True), FAR - 44)
    assert report.verdict == "different"
    assert report.failure is not None
    assert report.failure.check == "eval gradients"


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x / y,
        lambda x, y: torch.div(x, y),
        lambda x, y: 3 / y,
        lambda x, y: y.reciprocal(),
    ],
)
def test_quotients_are_differentiated_as_jax_does(function: Any) -> None:
    x, y = torch.tensor([1e20, 2.0]), torch.tensor([[3e20, 4.0], [5.0, 6e25]], requires_grad=True)
    (usual,) = torch.autograd.grad(function(x, y).sum(), y)
    with DividesAsJax():
        (found,) = torch.autograd.grad(function(x, y).sum(), y)
    far = y.detach() > 1e19
    assert torch.equal(found[far], torch.zeros(2))
    torch.testing.assert_close(found[~far], usual[~far])
