"""Named tuples and initialisers of another file, devices that are handed on, and bases that stand elsewhere."""

from __future__ import annotations

import inspect
from pathlib import Path

import jax.numpy as jnp
import pytest
from flax import nnx

from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

PARAMS = """\
from collections import namedtuple
from typing import NamedTuple

import torch
from torch import nn

Made = namedtuple("Made", ["tau", "v"])


class Derived(NamedTuple):
    tau: torch.Tensor = torch.as_tensor(2.0)
    v: torch.Tensor = torch.as_tensor(1.0)


class Named(NamedTuple):
    tau: torch.Tensor = torch.as_tensor(2.0)
    method: str = "super"


def make(n):
    return Made(torch.ones(n), 2.0)


def filled(w):
    nn.init.normal_(w)
    return w
"""
CELL = """\
import torch
from torch import nn

from .params import Derived, Made, Named, filled, make


class Cell(nn.Module):
    def __init__(self, n=4, p=Derived()):
        super().__init__()
        self.p = {value}

    def forward(self, x):
        return x * self.p.tau
"""


@pytest.mark.parametrize(
    "value",
    [
        "p",
        "Derived(tau=torch.ones(n))",
        "Made(torch.ones(n), 2.0)",
        "Made(tau=torch.ones(n), v=1.0)._replace(v=2.0)",
        "make(n)",
    ],
)
def test_a_named_tuple_that_a_module_keeps_is_shown_to_flax(tmp_path: Path, value: str) -> None:
    files = {"__init__.py": "", "params.py": PARAMS, "cell.py": CELL.format(value=value)}
    assert blocking(convert(tmp_path, files, name="flaxed")) == []
    cell = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/cell.py").Cell
    takes = "rngs" in inspect.signature(cell.__init__).parameters
    module = cell(**({"rngs": nnx.Rngs(0)} if takes else {}))
    got = nnx.jit(lambda m, x: m(x))(module, jnp.ones((2, 4)))
    assert got.shape == (2, 4)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("Named()", "API008"),  # a text is no array
        ("[make(n)]", "API008"),
        ("filled(nn.Parameter(torch.empty(n)))", "API009"),  # it is the parameter itself
    ],
)
def test_what_flax_would_not_find_is_said(tmp_path: Path, value: str, rule: str) -> None:
    files = {"__init__.py": "", "params.py": PARAMS, "cell.py": CELL.format(value=value)}
    assert any(rule in one for one in blocking(convert(tmp_path, files)))


def test_a_base_of_another_file_is_not_looked_into(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "base.py": "class Base:\n    def feed(self, data):\n        self.real = data\n",
        "model.py": """\
import torch
from torch import nn

from .base import Base


class Model(Base):
    def run(self, net, flag):
        self.real.requires_grad = True
        return net(self.real)
""",
    }
    convert(tmp_path, files)  # and it is told, not broken off
