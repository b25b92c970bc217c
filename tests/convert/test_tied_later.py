"""A Linear that shares an embedding's table in a branch only, or with a bias of its own."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, rules_of

TIED = """
class M(nn.Module):
    def __init__(self, tie=True):
        super().__init__()
        self.embed = nn.Embedding(5, 3, padding_idx=0)
        self.head = nn.Linear(3, 5, bias=BIAS)
        if tie:
            self.head.weight = self.embed.weight
        self.init()

    def init(self):
        nn.init.uniform_(self.head.weight, 0.4, 0.5)
        self.head.weight.data.mul_(2)
        AFTER

    def forward(self, i):
        y = self.head(self.embed(i))
        return y + self.head.weight.sum(1) + self.head.out_features
"""


@pytest.mark.parametrize("bias", ["True", "False"])
@pytest.mark.parametrize("tie", [True, False])
def test_tied_in_a_branch(tie: bool, bias: str) -> None:
    after = "nn.init.ones_(self.head.bias)" if bias == "True" else "pass"
    module, port, _ = both(TIED.replace("BIAS", bias).replace("AFTER", after), tie)
    i = torch.tensor([[0, 3, 4]])
    np.testing.assert_allclose(port(jnp.asarray(i.numpy())), module(i).detach(), rtol=1e-6)
    state = migrator.to_state_dict(port)
    assert set(state) == set(module.state_dict())
    assert len(nnx.to_flat_state(nnx.state(port, nnx.Param))) == len(list(module.parameters()))
    fresh = type(port)(tie, rngs=nnx.Rngs(1))
    weight = migrator.to_state_dict(fresh)["head.weight"]
    assert weight.shape == (5, 3)
    assert 0.8 <= weight.min() <= weight.max() <= 1
    assert np.array_equal(weight, migrator.to_state_dict(fresh)["embed.weight"]) == tie


def test_a_bias_alone_asks_for_the_same() -> None:
    source = TIED.replace("if tie:\n            self.head", "self.head").replace("BIAS", "True")
    module, port, code = both(source.replace("AFTER", "pass"))
    assert "self.head = TiedLinear(self.embed.embedding, self.head)" in code
    i = torch.tensor([1, 2])
    np.testing.assert_allclose(port(jnp.asarray(i.numpy())), module(i).detach(), rtol=1e-6)


LAST = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.out = nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 5, bias=BIAS))
        self.out[-1].weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.5)

    def forward(self, i):
        return self.out(self.embed(i))
"""


@pytest.mark.parametrize("bias", ["True", "False"])
def test_the_last_layer_of_several(bias: str) -> None:
    module, port, code = both(LAST.replace("BIAS", bias))
    assert "self.out.layers[-1] = TiedLinear(self.embed.embedding, self.out.layers[-1])" in code
    i = torch.tensor([1, 2])
    np.testing.assert_allclose(port(jnp.asarray(i.numpy())), module(i).detach(), rtol=1e-5)
    assert set(migrator.to_state_dict(port)) == set(module.state_dict())
    assert len(nnx.to_flat_state(nnx.state(port, nnx.Param))) == len(list(module.parameters()))


@pytest.mark.parametrize("plain", ["(tuple, torch.Tensor)", "int"])
def test_who_asks_for_other_classes_does_not_mind(plain: str) -> None:
    source = LAST.replace("BIAS", "False").replace("(i))\n", f"(i)) + isinstance(i, {plain})\n")
    module, port, _ = both(source)
    i = torch.tensor([1, 2])
    np.testing.assert_allclose(port(jnp.asarray(i.numpy())), module(i).detach(), rtol=1e-5)


def test_a_layer_of_several_that_is_read_as_a_linear() -> None:
    source = LAST.replace("BIAS", "False").replace("(i))\n", "(i)) + self.out[1].weight.sum()\n")
    assert "API009" in rules_of(source)


@pytest.mark.parametrize(
    "after",
    [
        "for m in self.modules():\n            pass",
        "print(isinstance(self.head, nn.Linear))",
        "self.apply(print)",
        "for name, m in self.named_children():\n            pass",
    ],
)
def test_who_goes_by_the_layers_classes_would_miss_the_linear(after: str) -> None:
    assert "API009" in rules_of(TIED.replace("BIAS", "True").replace("AFTER", after))
