"""Own containers that go by torch's table of their children, ``self._modules``."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from rules.compat.children import child_names, child_table
from tests.convert.tools import X, both, check, rules_of

CONTAINER = """
class Chain(nn.Module):
    def __init__(self, *layers, **named):
        super().__init__()
        for i, layer in enumerate(layers):
            self.add_module(str(i), layer)
        for name, layer in named.items():
            self.add_module(name, layer)

    def add(self, layer):
        self.add_module(str(len(self._modules)), layer)

    def __len__(self):
        return len(self._modules)

    def __getitem__(self, i):
        return list(self._modules.values())[i]

    def forward(self, x):
        BODY
"""
WALK = "for layer in self._modules.values():\n            x = layer(x)\n        return x"
MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        MADE

    def forward(self, x):
        return self.net(x) + len(self.net) + self.net[0](x).sum()
"""
TWELVE = "self.net = Chain(*[nn.Linear(4, 4) for _ in range(12)], nn.ReLU())"


def twice(source: str) -> None:
    """Compare outputs before and after the port went through jit, where Flax sorts the children by name."""
    check(source)
    module, port, _ = both(source)
    run = nnx.jit(lambda m, x: m(x))
    run(port, jnp.asarray(X.numpy()))
    want = module(X).detach().numpy()
    for call in (run, lambda m, x: m(x)):
        np.testing.assert_allclose(call(port, jnp.asarray(X.numpy())), want, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        WALK,
        WALK.replace("layer in self._modules.values()", "_, layer in self._modules.items()"),
        WALK.replace("layer in", "name in")
        .replace(".values()", "")
        .replace("= layer", "= self._modules[name]"),
        "for i in range(len(self)):\n            x = self[i](x)\n        return x",
        "return sum(layer(x) for layer in self._modules.values())",
    ],
)
@pytest.mark.parametrize(
    "made",
    [
        TWELVE,
        "self.net = Chain(nn.Linear(4, 4), z=nn.Linear(4, 4), a=nn.Tanh(), k=nn.BatchNorm1d(4))",
        TWELVE + "; self.net.add(nn.Linear(4, 4)); self.net.add(nn.Sigmoid())",
        "same = nn.Linear(4, 4); self.net = Chain(same, nn.Tanh(), same)",
    ],
)
def test_the_children_in_their_order(made: str, body: str) -> None:
    twice(CONTAINER.replace("BODY", body) + MODEL.replace("MADE", made))


def test_an_heir_that_adds_some() -> None:
    heir = "class Heir(Chain):\n    def __init__(self, layer):\n        super().__init__(layer)\n        self.z = nn.Linear(4, 4)\n        self.a = nn.Tanh()\n"
    made = "self.net = Heir(nn.Linear(4, 4))"
    twice(CONTAINER.replace("BODY", WALK) + heir + MODEL.replace("MADE", made))


@pytest.mark.parametrize(
    "body",
    ["self._modules.popitem()\n        return x", "t = self._modules\n        return t['0'](x)"],
)
def test_a_table_that_is_changed_or_kept(body: str) -> None:
    source = CONTAINER.replace("BODY", body) + MODEL.replace("MADE", TWELVE)
    assert "API007" in rules_of(source)


def test_a_child_that_another_module_adds() -> None:
    made = TWELVE + "; self.net.add_module('last', nn.Linear(4, 4))"
    source = CONTAINER.replace("BODY", WALK) + MODEL.replace("MADE", made)
    assert "API007" in rules_of(source)


def test_the_table_of_something_unknown() -> None:
    assert rules_of("def f(net, x):\n    return sum(m(x) for m in net._modules.values())\n") == [
        "API007"
    ]


def test_a_class_of_its_own_that_is_called_sequential() -> None:
    source = CONTAINER.replace("BODY", WALK) + MODEL.replace("MADE", TWELVE)
    twice(source.replace("Chain", "Sequential"))


def test_the_helpers_against_torch() -> None:
    """``child_table`` and ``child_names`` against ``_modules``, of a module that has a child under two names."""
    theirs, ours = torch.nn.Module(), nnx.Module()
    for name in ("z", "a", "k"):
        theirs.add_module(name, torch.nn.Linear(2, 2))
        setattr(ours, name, nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    theirs.again, ours.again = theirs.a, ours.a
    ours.function, ours.size = jnp.tanh, 3
    assert list(child_table(ours)) == list(child_names(ours)) == list(theirs._modules)
    assert child_table(ours)["again"] is ours.a
    ours._child_order = child_names(ours)
    ours.late = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    with pytest.raises(RuntimeError, match="after the module was built"):
        child_table(ours)
    assert child_names(ours)[-1] == "late"
