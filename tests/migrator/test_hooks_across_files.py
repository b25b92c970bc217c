"""Methods that the constructor of another file's class calls, and that a class overrides: they draw what they build."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

BASE = """
import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def noisy(self, x):
        return x + 0 * torch.randn_like(x)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.noisy(x)


class Composed(Stack):
    def __init__(self, sizes):
        made = self.compose(sizes)
        super().__init__(*made)
        self.number = len(made)

    def compose(self, sizes):
        return [self.compose_one(size) for size in sizes]

    def compose_one(self, size):
        raise NotImplementedError
"""
NET = """
from torch import nn

from .base import Composed


class Net(Composed):
    def __init__(self, sizes=None):
        found = [4, 4] if sizes is None else sizes
        super().__init__(found)
        self.head = nn.Linear(4, 4)

    def compose_one(self, size):
        return nn.Sequential(nn.Linear(size, size), nn.ReLU())

    def forward(self, x):
        return self.head(super().forward(x))


class Heir(Composed):
    def compose_one(self, size):
        return nn.Linear(size, size)
"""


@pytest.mark.parametrize("built", ["Net()", "Net([4])", "Heir([4, 4, 4])"])
def test_a_base_that_stores_its_generator_after_it_has_called_them(
    tmp_path: Path, built: str
) -> None:
    assert blocking(convert(tmp_path, {"base.py": BASE, "net.py": NET}, name="flaxed")) == []
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py")
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py")
    name, _, given = built.partition("(")
    args = [] if given == ")" else [[int(n) for n in given.strip("[])").split(",")]]
    model, port = getattr(theirs, name)(*args), getattr(ours, name)(*args, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    x = torch.linspace(-1, 1, 12).reshape(3, 4)
    want = model(x).detach().numpy()
    np.testing.assert_allclose(port(x.numpy()), want, rtol=1e-5, atol=1e-6)
