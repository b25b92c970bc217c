"""Methods that a class of another file overrides: what a base calls without a generator draws from the module's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, code, convert

BASE = """
from torch import nn


class Base(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.body = self.make_body()
        self.side = self.make_side(dim)

    def make_body(self):
        raise NotImplementedError

    def make_side(self, dim):
        return nn.Identity()

    def _init_weights(self, m):
        pass

    def post_init(self):
        self.apply(self._init_weights)

    def forward(self, x):
        return self.side(self.body(x))
"""
OWN = """
    def __init__(self, dim):
        super().__init__(dim)
        self.post_init()
"""
NET = """
from torch import nn
from .base import Base


class Net(Base):{own}
    def make_body(self):
        return nn.Sequential(nn.Linear(self.dim, 8), nn.ReLU())

    def make_side(self, dim):
        return nn.Linear(8, dim)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight, std=0.02)
"""


@pytest.mark.parametrize("own", [OWN, ""], ids=["a constructor of its own", "the inherited one"])
def test_what_a_base_of_another_file_calls_is_handed_no_generator(tmp_path: Path, own: str) -> None:
    found = convert(tmp_path, {"base.py": BASE, "net.py": NET.format(own=own)})
    assert blocking(found) == []
    module = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").Net(4)
    port = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py").Net(4, rngs=nnx.Rngs(0))
    spread = float(port.body.layers[0].kernel[...].std())
    assert (spread < 0.05) == bool(own), "post_init is run"
    migrator.load_state_dict(port, module.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    assert abs(module(torch.from_numpy(x)).detach().numpy() - np.asarray(port(x))).max() < 1e-5


def test_what_draws_nothing_keeps_no_generator(tmp_path: Path) -> None:
    net = "from .base import Base\n\n\nclass Net(Base):\n    def post_init(self):\n        self.dim += 1\n"
    found = convert(tmp_path, {"base.py": BASE, "net.py": net})
    assert "self.rngs" not in code(found, "net.py")


COMMON = """
import torch
import torch.nn as nn


class Conv(nn.Module):
    def forward(self, x):
        return x * 2
"""
PARSED = """
from .common import *


def parse(name, args):
    made = eval(name)
    if made is {asked}:
        return made(2)
    return made(*args)
"""


@pytest.mark.parametrize(("asked", "blocks"), [("nn.BatchNorm2d", True), ("Conv", False)])
def test_a_text_that_names_what_a_star_import_brings_of_torch(
    tmp_path: Path, asked: str, blocks: bool
) -> None:
    found = convert(tmp_path, {"common.py": COMMON, "net.py": PARSED.format(asked=asked)})
    assert ["API013" in one for one in blocking(found)] == [True] * blocks
