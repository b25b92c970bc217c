"""Wrappers that hand on what they do not have themselves: ``__getattr__`` over torch's own."""

from __future__ import annotations

import copy

import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from migrator import convert_source
from tests.convert.tools import loaded

SOURCE = """
import torch
import torch.nn as nn


class Wrap(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module
        self.gain = nn.Parameter(torch.ones(1))
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)
    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs) * self.gain


class Wrap2(nn.Module):
    def __init__(self, module):
        super(Wrap2, self).__init__()
        self.inner = module
    def __getattr__(self, name: str):
        if name == "inner":
            return super(Wrap2, self).__getattr__(name)
        return getattr(super().__getattr__("inner"), name)
    def forward(self, x):
        return self.inner(x)


class G6(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = Wrap(nn.Linear(4, 3))
        self.v = Wrap2(nn.Conv1d(4, 3, 1))
        self.n = self.w.out_features
    def forward(self, x):
        return self.w(x) * self.n + self.v(x[..., None])[..., 0] * self.v.kernel_size[0]
"""


def test_a_wrapper_finds_what_it_wraps() -> None:
    theirs, ours, _ = loaded(SOURCE)
    original, port = theirs["G6"](), ours["G6"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    assert set(migrator.to_state_dict(port)) == set(original.state_dict())
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    want = original(torch.tensor(x)).detach().numpy()
    again = nnx.merge(*nnx.split(port))
    for one in (port, again, copy.deepcopy(port)):
        got = nnx.jit(lambda m, x: m(x))(one, jnp.asarray(x))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_layer_for_a_property_is_a_finding() -> None:
    """torch keeps it among the children and never calls the setter: the getter goes on with the old one."""
    source = """
import torch.nn as nn


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self._act = nn.ReLU()

    @property
    def act(self):
        return self._act

    @act.setter
    def act(self, value):
        self._act = value

    def forward(self, x):
        return self.act(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.inner.act = nn.Tanh()

    def forward(self, x):
        return self.inner(x)
"""
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["API007"]
