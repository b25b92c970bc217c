"""Weights to verify with keep the numbers of deep networks in range."""

from __future__ import annotations

import numpy as np
import torch
from flax import nnx

import migrator
from numerics.parameters import grows, perturbed
from numerics.spec import Array, InputSpec
from numerics.verify import Settings

SOURCE = """
import torch
import torch.nn as nn


class Deep(nn.Module):
    def __init__(self, depth: int = 32):
        super().__init__()
        layers = [nn.Sequential(nn.Linear(16, 16, bias=False), nn.BatchNorm1d(16)) for _ in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.norm = nn.LayerNorm(16, EPS)

    def forward(self, x: torch.Tensor):
        return self.norm(self.layers(x))
"""


def deep(depth: int = 32) -> torch.nn.Module:
    found: dict = {}
    exec(SOURCE.replace("EPS", "1e-5"), found)
    torch.manual_seed(0)
    return found["Deep"](depth)


def test_statistics_make_numbers_grow() -> None:
    x = (torch.randn(3, 16),)
    model = deep()
    made = perturbed(model, "fresh")
    assert grows(made, x, {})
    assert not made.training or made.training == model.training
    assert not grows(perturbed(model, "fresh", balanced=True), x, {})
    assert not grows(perturbed(deep(3), "fresh"), x, {})
    assert not grows(torch.nn.Linear(16, 16), x, {})


def test_a_deep_network_is_equal_and_a_wrong_one_is_not() -> None:
    """Beyond float32's range torch has NaN where XLA has numbers: that is no difference of the two programs."""
    model = deep()
    settings = Settings(examples=1, shapes=1, train=False, grad=False, shrink_seconds=0)
    spec = InputSpec((Array((3, 16)),))
    for eps in ("1e-5", "0.1"):
        port: dict = {}
        exec(migrator.convert_source(SOURCE.replace("EPS", eps)).code, port)
        flax = port["Deep"](rngs=nnx.Rngs(0))
        migrator.load_state_dict(flax, model.state_dict())
        assert migrator.verify(model, flax, spec, settings=settings).ok == (eps == "1e-5")
    assert np.isfinite(model(torch.ones(2, 16)).detach().numpy()).all()


class Scripted(torch.jit.ScriptModule):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    @torch.jit.script_method
    def forward(self, x):
        return self.norm(x)


def test_modules_that_take_no_hooks_are_run() -> None:
    """A ScriptModule within a module refuses them."""
    x = (torch.randn(3, 4),)
    assert not grows(torch.nn.Sequential(Scripted(), torch.nn.BatchNorm1d(4)), x, {})
