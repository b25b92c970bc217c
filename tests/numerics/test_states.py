"""Whole states that are written into a module."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

import migrator
from numerics.states import put
from tests.convert.tools import both

RECURRENT = """
class M(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.hidden = torch.zeros(1, n, 4), torch.zeros(1, n, 4)

    def forward(self, x):
        self.hidden = tuple(h.detach() for h in self.hidden)
        y, self.hidden = self.lstm(x, self.hidden)
        return y
"""


class Pair(NamedTuple):
    array: Any
    kept: Any


class Holder(nnx.Module):
    """Arrays at every place where a state may have them."""

    def __init__(self) -> None:
        self.nested = nnx.data((jnp.zeros(2), (jnp.ones(2), "kept")))
        self.named = nnx.data(Pair(jnp.zeros(2), 3))
        self.inner = nnx.data({"items": (jnp.zeros(1),)})
        self.row = nnx.List([nnx.Param(jnp.ones(1)), nnx.Linear(2, 2, rngs=nnx.Rngs(0))])
        self.layers = nnx.Sequential(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), jax.nn.relu)


def test_arrays_in_tuples_are_written() -> None:
    """Flax's own ``update`` raises there: a tuple cannot be written into."""
    module = Holder()
    put(module, jax.tree.map(lambda value: value + 5, nnx.state(module)))
    first, (second, kept) = module.nested
    found = [first, second, module.named.array, module.inner["items"][0]]
    found += [module.row[0][...], module.row[1].bias[...], module.layers.layers[0].bias[...]]
    want = [5, 6, 5, 5, 6, 5, 5]
    for value, number in zip(found, want, strict=True):
        np.testing.assert_array_equal(value, np.full(value.shape, number, np.float32))
    assert (kept, module.named.kept, type(module.named)) == ("kept", 3, Pair)


def test_a_module_that_keeps_a_tuple_of_tensors_is_verified() -> None:
    model, port, _ = both(RECURRENT, 2)
    report = migrator.verify(model, port, inputs=[np.ones((5, 2, 3), np.float32)], train=True)
    assert report.verdict == "equal", str(report)
