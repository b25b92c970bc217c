"""Losses of one's own: classes that derive from the private bases of torch's."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import loaded

WEIGHTED = """
from torch.nn.modules.loss import _Loss, _WeightedLoss


class Focal(_WeightedLoss):
    def __init__(self, weight=None, gamma=2.0, reduction="mean"):
        super().__init__(weight, reduction=reduction)
        self.gamma = gamma

    def forward(self, x, y):
        loss = F.cross_entropy(x, y, weight=self.weight, reduction="none")
        loss = (1 - torch.exp(-loss)) ** self.gamma * loss
        if self.weight is not None:
            loss = loss * self.weight.sum()
        return loss.sum() if self.reduction == "sum" else loss.mean()


class Squares(_Loss):
    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__(size_average, reduce, reduction)

    def forward(self, x, y):
        loss = (x - y) ** 2
        if self.reduction == "none":
            return loss
        return loss.mean() if self.reduction == "mean" else loss.sum()
"""


@pytest.mark.parametrize("weight", [None, [0.5, 1.0, 2.0]])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_a_loss_with_weights(weight: list[float] | None, reduction: str) -> None:
    theirs, ours, _ = loaded(WEIGHTED)
    given = None if weight is None else torch.tensor(weight)
    made = None if weight is None else jnp.asarray(weight)
    loss = theirs["Focal"](given, reduction=reduction)
    port = ours["Focal"](made, reduction=reduction, rngs=nnx.Rngs(0))
    assert migrator.to_state_dict(port).keys() == loss.state_dict().keys()
    migrator.load_state_dict(port, loss.state_dict())
    x, y = torch.randn(5, 3, requires_grad=True), torch.arange(5) % 3
    loss(x, y).backward()
    value, slope = nnx.value_and_grad(lambda x: port(x, jnp.asarray(y.numpy())))(
        jnp.asarray(x.detach().numpy())
    )
    np.testing.assert_allclose(value, loss(x, y).detach(), rtol=1e-5)
    np.testing.assert_allclose(slope, x.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "old", [(), (False,), (None, False), (True, True), (None, None, "sum"), (False, None, "none")]
)
def test_the_old_spelling_of_reduction(old: tuple[object, ...]) -> None:
    theirs, ours, _ = loaded(WEIGHTED)
    x, y = torch.randn(5, 3), torch.randn(5, 3)
    made = ours["Squares"](*old, rngs=nnx.Rngs(0))(jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
    np.testing.assert_allclose(made, theirs["Squares"](*old)(x, y), rtol=1e-5)
