"""Methods that draw by another of their class, and are called on what is not known: nobody hands a generator over."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import HEADER, sides

PROGRAM = """class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("noise", torch.zeros(4))
        self.reset_noise()

    def scale(self, n):
        return torch.randn(n).sign().abs()

    def reset_noise(self):
        self.noise.copy_(self.noise + self.scale(4))

    def forward(self, x):
        return x + self.noise


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Noisy()
        self.b = Noisy()

    def forward(self, x):
        CALLS
        return self.a(self.b(x))
"""
CALLS = [
    "for m in self.children(): m.reset_noise()",
    "for name, m in self.named_children(): m.reset_noise()",
    "for m in [self.a, self.b]: m.reset_noise()",
    "for name in ('a', 'b'): getattr(self, name).reset_noise()",
    "getattr(self.a, 'reset_noise')(); self.b.reset_noise()",
    "self.a.reset_noise(); self.b.reset_noise()",
]


def _compare(calls: str) -> None:
    """The port of a program with some calls gives what torch does, called twice, under jit as well."""
    told, theirs, ours = sides(HEADER + PROGRAM.replace("CALLS", calls))
    assert not told
    model, port, x = theirs["M"](), ours["M"](rngs=nnx.Rngs(0)), np.float32([[1, 2, 3, 4]])
    run = nnx.jit(lambda module, x: module(x))
    for call in (run, lambda module, x: module(x)):
        wanted = model(theirs["torch"].tensor(x))
        np.testing.assert_array_equal(call(port, jnp.asarray(x)), wanted)


@pytest.mark.parametrize("calls", CALLS)
def test_who_draws_by_another_method(calls: str) -> None:
    _compare(calls)


@pytest.mark.parametrize(
    "loop",
    [
        "for m in self.modules():\n            if isinstance(m, Noisy):\n                m.reset_noise()",
        "for name, m in self.named_modules():\n            if isinstance(m, Noisy):\n                m.noise.add_(1)",
    ],
)
def test_each_module_for_itself(loop: str) -> None:
    _compare(loop)


@pytest.mark.parametrize(
    "reset",
    [
        "self.noise.copy_(self.inner.noise + 1)",
        "self.noise.copy_(COUNT.noise)",
        "self.noise.copy_(self.noise); self.inner.noise.zero_()",
    ],
)
def test_each_module_by_another(reset: str) -> None:
    text = PROGRAM.replace("self.noise.copy_(self.noise + self.scale(4))", reset)
    text = text.replace("self.reset_noise()\n\n    def scale", "self.inner = None\n\n    def scale")
    loop = "for m in self.modules():\n            if isinstance(m, Noisy):\n                m.reset_noise()"
    text = HEADER + "COUNT = None\n\n\n" + text.replace("CALLS", loop).replace("; ", "\n        ")
    assert sides(text)[0]
