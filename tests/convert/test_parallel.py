"""``nn.DataParallel``: torch's, without a GPU, calls the module that is in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from rules.compat.parallel import DataParallel
from tests.convert.tools import convert, loaded

SOURCE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.bn = nn.BatchNorm1d(3)

    def features(self, x):
        return self.fc(x)

    def forward(self, x, scale=1.0):
        return self.bn(self.fc(x)) * scale, x.size(0)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.DataParallel(Net(), device_ids=[0, 1], dim=0)
        self.last = torch.nn.parallel.DataParallel(module=nn.Linear(3, 2))

    def forward(self, x):
        y, size = self.net(x, scale=2.0)
        y = y.view(size, -1) + self.net.module.features(x).reshape(size, 3)
        return self.last(y)


def build(gpu_ids=()):
    net = M()
    if torch.cuda.device_count() > 1:
        net = nn.DataParallel(net).cuda()
    if len(gpu_ids) > 0:
        net = torch.nn.DataParallel(net, gpu_ids)
    return net.module if isinstance(net, nn.DataParallel) and len(gpu_ids) > 1 else net
"""


def _both() -> tuple[dict[str, Any], dict[str, Any]]:
    theirs, ours, _ = loaded(SOURCE)
    return theirs, ours


@pytest.mark.parametrize("ids", [(), (0,), (0, 1)])
def test_it_computes_and_names_its_parameters_as_torch_does(ids: tuple[int, ...]) -> None:
    theirs, ours = _both()
    model, port = theirs["build"](ids), ours["build"](ids, rngs=nnx.Rngs(0))
    state = model.state_dict()
    assert any(name.startswith("module.") for name in state) == (len(ids) == 1)
    migrator.load_state_dict(port, state)
    assert sorted(migrator.to_state_dict(port)) == sorted(state)
    x = torch.randn(5, 3)
    for mode in ("train", "eval"):
        getattr(model, mode)()
        getattr(port, mode)()
        np.testing.assert_allclose(port(x.numpy()), model(x).detach(), rtol=1e-4, atol=1e-5)
    after = migrator.to_state_dict(port)
    for name, value in model.state_dict().items():
        np.testing.assert_allclose(after[name], value, rtol=1e-4, atol=1e-5)


def test_what_its_module_writes_to_is_a_finding() -> None:
    source = """
import torch
from torch import nn


class Writes(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.DataParallel(Writes())

    def forward(self, x):
        y = x + 0
        z = self.net(y)
        return y + z
"""
    assert not convert(source).complete
    assert not convert(source.replace("Writes()", "nn.ReLU(inplace=True)")).complete


def test_the_helper() -> None:
    tanh = DataParallel(nnx.Linear(2, 3, rngs=nnx.Rngs(0)))
    assert tanh(np.ones((4, 2), np.float32)).shape == (4, 3)
