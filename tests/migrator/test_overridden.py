"""Methods that a class of another file overrides: what a base calls without a generator draws from the module's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.convert.tools import convert as convert_one
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


PLAIN = """
from torch import nn
from . import first, second


class Experiment:
    def __init__(self, args):
        self.args = args
        self.models = {"first": first, "second": second}
        self.model = self._build_model().to("cpu")

    def _build_model(self):
        raise NotImplementedError
        return None
"""
FORECAST = """
from .plain import Experiment


class Forecast(Experiment):
    def __init__(self, args):
        super(Forecast, self).__init__(args)

    def _build_model(self):
        return self.models[self.args].Model(4).float()


def make():
    return Forecast("second")
"""
MODEL = """
from torch import nn


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, {out})

    def forward(self, x):
        return self.fc(x)
"""


def test_a_plain_class_leaves_its_model_to_those_that_derive_from_it(tmp_path: Path) -> None:
    models = {"first.py": MODEL.format(out=2), "second.py": MODEL.format(out=3)}
    files = {"__init__.py": "", "plain.py": PLAIN, "forecast.py": FORECAST, **models}
    found = convert(tmp_path, files)
    assert blocking(found) == []
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/forecast.py")
    assert ours.make(rngs=nnx.Rngs(0)).model(np.ones((2, 4), np.float32)).shape == (2, 3)


ONE_FILE = """
class Base:
    def __init__(self, n):
        self.body = nn.Linear(n, n)
        self.head = self.head_of(n)

    def head_of(self, n):
        return None


class Own(Base):
    def __init__(self, n):
        super().__init__(n)
        self.n = n

    def head_of(self, n):
        return nn.Linear(n, 2)


class Inherited(Base):
    pass


def make():
    return Own(3), Inherited(4)
"""


def test_a_plain_class_hands_its_base_the_generator() -> None:
    result = convert_one(ONE_FILE)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    own, inherited = ours["make"](rngs=nnx.Rngs(0))
    assert (own.head.kernel.shape, own.body.kernel.shape) == ((3, 2), (3, 3))
    assert (inherited.head, inherited.body.kernel.shape) == (None, (4, 4))
