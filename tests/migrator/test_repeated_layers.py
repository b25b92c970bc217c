"""``make_layer(Block, n)`` of another file: what it gives is known by the class that it is handed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

UTIL = """
import functools
from torch import nn


def make_layer(block, n, **kwargs):
    layers = []
    for _ in range(n):
        layers.append(block(**kwargs))
    return nn.Sequential(*layers)


def make_list(n, block, width):
    return nn.ModuleList([block(width) for _ in range(n)])


def with_act(block, n):
    layers = [nn.ReLU(inplace=True)]
    layers += [block(4) for _ in range(n)]
    return nn.Sequential(*layers)


def of_each(block, blocks):
    return nn.Sequential(*[block() for block in blocks])


def renewed(block, n):
    block = functools.partial(nn.ReLU, inplace=True) if n == 1 else block
    return nn.Sequential(*[block() for _ in range(n)])
"""
NET = """
import functools
from torch import nn
from .util import make_layer, make_list, of_each, renewed, with_act


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        LINE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = MADE

    def forward(self, x):
        x = x * 2
        y = RUN
        return y - x
"""
RIGHT = "return x + self.act(self.fc(x))"
WRITES = "x = self.act(x)\n        return x + self.fc(x)"
LISTED = "self.body[1](self.body[0](x))"


def _files(made: str, line: str = RIGHT, run: str = "self.body(x)") -> dict[str, str]:
    net = NET.replace("LINE", line).replace("MADE", made).replace("RUN", run)
    return {"util.py": UTIL, "net.py": net}


@pytest.mark.parametrize(
    ("made", "run"),
    [
        ("make_layer(Block, 2, width=4)", "self.body(x)"),
        ("make_layer(n=2, block=Block)", "self.body(x)"),
        ("make_layer(functools.partial(Block, width=4), 2)", "self.body(x)"),
        ("make_list(2, Block, 4)", LISTED),
    ],
)
def test_layers_of_one_class(tmp_path: Path, made: str, run: str) -> None:
    found = convert(tmp_path, _files(made, run=run))
    assert blocking(found) == []
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").Net().eval()
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py").Net(rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(3, 4)
    with torch.no_grad():
        np.testing.assert_allclose(ours(x.numpy()), theirs(x).numpy(), rtol=1e-5, atol=1e-6)
    wrong = convert(tmp_path / "wrong", _files(made, WRITES, run))
    assert {one[:11] for one in blocking(wrong)} == {"net.py: MUT"}


@pytest.mark.parametrize(
    "made",
    [
        "with_act(Block, 2)",
        "of_each(Block, [functools.partial(nn.ReLU, inplace=True)])",
        "renewed(Block, 2)",
        "make_layer(functools.partial(nn.ReLU, inplace=True), 2)",
    ],
)
def test_layers_that_may_be_others(tmp_path: Path, made: str) -> None:
    assert {one[:14] for one in blocking(convert(tmp_path, _files(made)))} == {"net.py: MUT002"}
