"""A ModuleDict that is iterated over keeps its order when the port is compiled, as ``nnx.Dict`` would not."""

from __future__ import annotations

import sys
import types

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator import convert_source, load_state_dict

SOURCE = """
import torch
import torch.nn as nn


class Heads(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads = nn.ModuleDict({"z": nn.Linear(d, d), "a": nn.Linear(d, d), "m": nn.Linear(d, d)})

    def forward(self, x):
        for name, head in self.heads.items():
            x = torch.tanh(head(x))
        return x


class Layers(nn.ModuleDict):
    def __init__(self, d):
        super().__init__()
        for i in range(12):
            self.add_module("layer%d" % i, nn.Linear(d, d))

    def forward(self, x):
        for layer in self.values():
            x = torch.tanh(layer(x))
        return x
"""


def load(code: str, name: str) -> types.ModuleType:
    """Run source as a module of its own."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(code, name, "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("name", ["Heads", "Layers"])
def test_order_under_jit(name: str) -> None:
    torch_module = getattr(load(SOURCE, "ordered_torch"), name)(4)
    result = convert_source(SOURCE)
    assert result.complete
    port = getattr(load(result.code, "ordered_flax"), name)(4, rngs=nnx.Rngs(0))
    load_state_dict(port, torch_module.state_dict())
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    found = nnx.jit(lambda m, v: m(v))(port, jnp.asarray(x))
    np.testing.assert_allclose(found, torch_module(torch.from_numpy(x)).detach(), atol=1e-6)
