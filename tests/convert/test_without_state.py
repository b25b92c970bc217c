"""Modules in a plain list that keep nothing: torch does not know them, and there is nothing of them to know."""

from __future__ import annotations

import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import loaded, rules_of, same

SOURCE = """
import torch
import torch.nn as nn


class Average(nn.Module):
    def __init__(self, kernel_size, stride):
        super().__init__()
        self.kernel_size = kernel_size
        self.avg = nn.AvgPool1d(kernel_size=kernel_size, stride=stride, padding=0)

    def forward(self, x):
        n = (self.kernel_size - 1) // 2
        x = torch.cat([x[:, :, :1].repeat(1, 1, n), x, x[:, :, -1:].repeat(1, 1, n)], dim=-1)
        return self.avg(x)


class Net(nn.Module):
    def __init__(self, kernels=(3, 5)):
        super().__init__()
        self.averages = [Average(kernel, stride=1) for kernel in kernels]
        self.pools = [nn.MaxPool1d(3, 1, 1), nn.ReLU()]
        self.layer = nn.Linear(1, len(kernels))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        means = torch.cat([one(x).unsqueeze(-1) for one in self.averages], dim=-1)
        for pool in self.pools:
            x = pool(x)
        return (means * self.layer(x.unsqueeze(-1)).softmax(-1)).sum(-1) + len(list(self.children()))
"""

KEEP = """class Keep(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act

    def forward(self, x):
        return self.act(x)


"""
NET = """class Net(nn.Module):
    def __init__(self, kernels=(3, 5)):
        super().__init__()
"""


def test_lists_of_modules_without_state() -> None:
    theirs, ours, _ = loaded(SOURCE)
    original = theirs["Net"]()
    port = ours["Net"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    original.eval()
    port.eval()
    same(original, port, torch.randn(2, 3, 8).numpy(), jit=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("self.avg = ", "self.w = nn.Parameter(torch.ones(1))\n        self.avg = ", id="a parameter"),
        pytest.param("self.avg = nn.AvgPool1d(", "self.d = nn.Dropout()\n        self.avg = nn.AvgPool1d(", id="a mode"),
        pytest.param("self.avg = ", "self.c = nn.BatchNorm1d(3)\n        self.avg = ", id="statistics"),
        pytest.param("return self.avg(x)", "return self.avg(x) if self.training else x", id="asks the mode"),
        pytest.param(NET, KEEP + NET.replace(")):", "), act=None):") + "        self.kept = [Keep(act)]\n", id="what it is given may be a layer"),
        pytest.param("self.avg = ", "for i in range(2):\n            self.add_module(f'fc{i}', nn.Linear(3, 3))\n        self.avg = ", id="children under other names"),
        pytest.param("self.avg = ", "setattr(self, 'fc', nn.Linear(3, 3))\n        self.avg = ", id="a child by setattr"),
        pytest.param("return (means", "n = [isinstance(m, Average) for m in self.modules()]\n        return (means", id="asked for by its class"),
        pytest.param("self.layer = ", "self.pools.append(nn.Linear(8, 8))\n        self.layer = ", id="appended later"),
        pytest.param("self.layer = ", "pools = self.pools\n        pools.append(nn.Linear(8, 8))\n        self.layer = ", id="appended by another name"),
        pytest.param("self.layer = ", "self.pools[0] = nn.Linear(8, 8)\n        self.layer = ", id="another one put in"),
        pytest.param("nn.MaxPool1d(3, 1, 1)", "nn.Linear(8, 8)", id="a layer with weights"),
        pytest.param("nn.MaxPool1d(3, 1, 1)", "nn.Dropout(0.1)", id="dropout, which torch never switches off"),
        pytest.param("self.pools = [", "self.pools = []\n        self.pools += [", id="filled later"),
    ],
)  # fmt: skip
def test_what_may_keep_something_is_a_finding(old: str, new: str) -> None:
    assert old in SOURCE
    assert "API008" in rules_of(SOURCE.replace(old, new))
