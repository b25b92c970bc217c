"""Functions of torch that are handed around, and what calls them."""

from __future__ import annotations

import pytest

import migrator
from tests.convert.tools import check

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F


def uniform(*shape):
    t = torch.empty(shape)
    nn.init.uniform_(t)
    return t


class M(nn.Module):
    def __init__(self, one=True):
        super().__init__()
"""
NETS = {
    "sizes": (
        "made = torch.ones if one else uniform\n        self.register_buffer('w', made(4, 4))",
        "return x @ self.w",
    ),
    "an axis by name": (
        "self.pool = torch.mean if one else torch.sum",
        "return self.pool(x, dim=1)",
    ),
    "an axis by place, and kept": (
        "self.pool = {'mean': torch.mean, 'std': torch.std}['std']",
        "return self.pool(x, 1, keepdim=True)",
    ),
    "a slope": (
        "self.act = F.leaky_relu if one else F.elu",
        "return self.act(x, 0.3)",
    ),
    "in place": (
        "self.act = F.relu if one else F.elu",
        "return self.act(x * 1, inplace=True)",
    ),
    "nothing else": ("self.act = F.softplus if one else F.relu", "return self.act(x)"),
    "a spread of all": ("self.pool = torch.std if one else torch.sum", "return self.pool(x) + x"),
}


def source(name: str) -> str:
    first, last = NETS[name]
    return f"{HEAD}        {first}\n\n    def forward(self, x: torch.Tensor):\n        {last}\n"


@pytest.mark.parametrize("name", list(NETS))
def test_they_are_called_as_they_were(name: str) -> None:
    check(source(name))


def test_a_function_of_jax_stands_where_one_argument_is_given() -> None:
    code = migrator.convert_source(source("nothing else")).code
    assert "self.act = jax.nn.softplus if one else jax.nn.relu" in code
    code = migrator.convert_source(source("a spread of all")).code
    assert "self.pool = std_safe if one else" in code
    code = migrator.convert_source(source("an axis by place, and kept")).code
    assert "self.pool = {'mean': mean, 'std': std}" in code
