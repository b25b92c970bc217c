"""Copies whose parameters a forward pass reads: they are new leaves in torch, and the original gets no gradient."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import X, both, rules_of

NET = """import copy


def norm(net):
    return sum(p.pow(2).sum() for p in copy.deepcopy(net).parameters())


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x):
        x = self.net(self.fc(x))
        return READ
"""


@pytest.mark.parametrize(
    "read",
    [
        "x + sum(p.sum() for p in copy.deepcopy(self.net).parameters())",
        "x @ copy.deepcopy(self.fc).weight",
        "x @ copy.deepcopy(self.fc.weight)",
        "x * norm(self.net)",
        "copy.deepcopy(self.net)(x)",
    ],
)
def test_a_copy_that_is_read_leaves_no_gradient(read: str) -> None:
    model, port, _ = both(NET.replace("READ", read))
    (model(X) ** 2).sum().backward()
    found = nnx.grad(lambda net: (net(jnp.asarray(X.numpy())) ** 2).sum())(port)
    fc, first = model.fc, model.net[0]
    assert isinstance(fc, torch.nn.Linear)
    assert isinstance(first, torch.nn.Linear)
    for ours, theirs in ((found.fc, fc), (found.net.layers[0], first)):
        assert theirs.weight.grad is not None
        np.testing.assert_allclose(ours.kernel.T, theirs.weight.grad, rtol=1e-4, atol=1e-4)


WALKS = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    @property
    def read(self):
        return READ

    def forward(self, x):
        return self.fc(x), self.read
"""


@pytest.mark.parametrize(
    ("read", "rule"),
    [
        ("[p.sum() * i for i, p in enumerate(self.fc.parameters())]", "API007"),
        ("[n for n, _ in self.fc.named_parameters()]", "API007"),
        ("[n for n, m in self.named_modules() if n]", "API007"),
        ("sum(p.sum() for p in self.parameters(recurse=False))", "API002"),
        ("sum(p.sum() for _, p in self.named_parameters('', False))", "API002"),
        ("sum(p.sum() for _, p in self.named_parameters(remove_duplicate=False))", "API002"),
    ],
)
def test_a_property_goes_by_an_order_too(read: str, rule: str) -> None:
    assert rule in rules_of(WALKS.replace("READ", read))
