"""``p.data = value`` and ``layer.weight = nn.Parameter(value)`` of another shape or dtype than before."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, convert, rules_of

GIVEN = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)
        self.w = nn.Parameter(torch.zeros(2, 3))
        self.register_buffer("b", torch.zeros(2))
        LINE

    def forward(self, x):
        return self.fc(x).sum() + self.w.sum(0) + self.b.sum() + self.w.shape[0]
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.w.data = torch.ones(1, 3)",  # would be broadcast to the old shape
        "self.w.data = torch.ones(4, 3)",
        "self.w.data = self.w.data.t().reshape(1, 6)[:, :3]",
        "self.b.data = torch.ones(7)",
        "self.fc.weight.data = torch.cat([self.fc.weight.data, torch.ones(1, 4)])[:5]",
        "self.fc.weight.data = torch.ones(3, 4)\n        self.fc.bias.data = torch.ones(3)",
        "self.fc.weight = nn.Parameter(torch.ones(2, 4))\n        self.fc.bias = nn.Parameter(torch.ones(2))",
        "for p in (self.w,):\n            p.data = torch.full((3, 3), 2.0)",
    ],
)
def test_the_new_form_is_kept(line: str) -> None:
    module, port, _ = both(GIVEN.replace("LINE", line))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), rtol=1e-5)
    fresh = migrator.to_state_dict(type(port)(rngs=nnx.Rngs(0)))
    for name, value in module.state_dict().items():
        assert fresh[name].shape == tuple(value.shape), name


@pytest.mark.parametrize(
    "line",
    [
        "self.w.data = self.w.data * 0.5",
        "self.w.data = torch.zeros_like(self.w)",
        "self.w.data = self.w.data.clamp(-1, 1)",
        "self.w.data = -self.w.data",
    ],
)
def test_what_keeps_the_form_is_an_assignment_of_its_items(line: str) -> None:
    assert "self.w[...] = " in convert(GIVEN.replace("LINE", line)).code


def test_own_memory_in_another_shape_is_shared_with_nobody() -> None:
    line = "self.w.data = self.w.data.permute(1, 0)"
    module, port, _ = both(GIVEN.replace("LINE", line).replace("self.w.sum(0)", "self.w.sum(1)"))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), rtol=1e-5)
    assert port.w.shape == (3, 2)


@pytest.mark.parametrize(
    "line",
    ["self.k.data = self.k.data * 0.5", "self.k.data = self.k.data / 2", "self.k = self.k / 2"],
)
def test_whole_numbers_become_floats_as_in_torch(line: str) -> None:
    line = f"self.register_buffer('k', torch.tensor([1, 3]))\n        {line}"
    module, port, _ = both(GIVEN.replace("LINE", line).replace("self.b.sum()", "self.k.sum()"))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), module(x).detach(), rtol=1e-5)
    fresh = migrator.to_state_dict(type(port)(rngs=nnx.Rngs(0)))
    np.testing.assert_array_equal(fresh["k"], module.state_dict()["k"].numpy())


@pytest.mark.parametrize(
    "line",
    ['getattr(self, "w").data[0] = 1.5', 'nn.init.ones_(getattr(self, "w"))'],
)
def test_a_parameter_by_its_name_is_written(line: str) -> None:
    module, port, _ = both(GIVEN.replace("LINE", line))
    fresh = migrator.to_state_dict(type(port)(rngs=nnx.Rngs(0)))
    np.testing.assert_array_equal(fresh["w"], module.state_dict()["w"].numpy())


@pytest.mark.parametrize("write", ["data[0] = 1.0", "data *= 2", "data[:1] += 1", "data.fill_(2)"])
def test_a_parameter_by_a_name_that_only_a_run_tells_is_a_finding(write: str) -> None:
    line = f'for one in ("w", "b"):\n            getattr(self, one).{write}'
    assert rules_of(GIVEN.replace("LINE", line)) == ["MUT001"]
