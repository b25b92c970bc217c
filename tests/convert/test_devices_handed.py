"""Devices of what is not known, which a function of the file is given and has no use for."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import loaded

SOURCE = """
from typing import NamedTuple


class State(NamedTuple):
    v: torch.Tensor


def ones(n, device):
    return torch.ones(n, device=device)


class M(nn.Module):
    def mask(self, n, device=None):
        return torch.arange(n, device=device)

    def forward(self, x):
        batch, state, xs = {{"x": x}}, State(x), [x, x]
        return x * {0}


def run(model, batch):
    return model(batch["x"]) + ones(4, batch["x"].device)
"""


@pytest.mark.parametrize(
    "made",
    [
        'ones(4, device=batch["x"].device)',
        'self.mask(4, batch["x"].device)',
        "self.mask(n=4, device=xs[0].device)",
        "ones(4, state.v.device)",
    ],
)
def test_nothing_asks_a_traced_array_for_its_device(made: str) -> None:
    theirs, ours, code = loaded(SOURCE.format(made))
    x = np.arange(4.0, dtype=np.float32)
    want = theirs["run"](theirs["M"](), {"x": torch.from_numpy(x)})
    model = ours["M"]()
    got = jax.jit(lambda x: ours["run"](model, {"x": x}))(jnp.asarray(x))
    np.testing.assert_allclose(got, want)
    assert isinstance(model, nnx.Module)
    assert ".device" not in code


BOUND = """
class M(nn.Module):
    def grid(self, n, dtype, device):
        return torch.arange(n, dtype=dtype, device=device)

    def forward(self, batch):
        {0}
        return self.grid(4, dtype, device) + torch.ones(4, device=device)


def run(model, x):
    return model({{"x": [x]}}) * x
"""


@pytest.mark.parametrize(
    "bound",
    [
        'dtype, device = batch["x"][0].dtype, batch["x"][0].device',
        'dtype = batch["x"][0].dtype; device = batch["x"][0].device',
        '(device, dtype) = (batch["x"][0].device, batch["x"][0].dtype)',
    ],
)
def test_a_device_that_is_bound_and_handed_on(bound: str) -> None:
    theirs, ours, code = loaded(BOUND.format(bound))
    x = np.arange(4.0, dtype=np.float32)
    want = theirs["run"](theirs["M"](), torch.from_numpy(x))
    model = ours["M"]()
    got = jax.jit(lambda x: ours["run"](model, x))(jnp.asarray(x))
    np.testing.assert_allclose(got, want)
    assert ".device" not in code
