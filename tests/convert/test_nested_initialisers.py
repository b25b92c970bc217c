"""Functions whose inner functions draw, called by others: a generator reaches them all."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from flax import nnx

import migrator
from tests.convert.tools import convert

NETWORKS = """
def init_weights(net, gain=0.02):
    def init_func(m):
        if isinstance(m, nn.Linear):
            nn.init.normal_(m.weight.data, 0.0, gain)
            nn.init.constant_(m.bias.data, 1.0)

    net.apply(init_func)


def init_net(net, gain=0.02):
    init_weights(net, gain=gain)
    return net


def define(n):
    return init_net(nn.Sequential(nn.Linear(n, n), nn.ReLU()), gain=0.5)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = define(64)

    def forward(self, x):
        return self.net(x)
"""


def test_who_calls_the_function_around_hands_a_generator_on() -> None:
    result = convert(NETWORKS)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    state = migrator.to_state_dict(ours["M"](rngs=nnx.Rngs(0)))
    assert np.allclose(state["net.0.bias"], 1)
    assert 0.45 < np.std(state["net.0.weight"]) < 0.55
    assert ours["M"](rngs=nnx.Rngs(0))(jnp.ones((2, 64))).shape == (2, 64)
