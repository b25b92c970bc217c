"""Functions of torch that write to what they are handed: running statistics, and rows that are cut to a norm."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from rules.compat.embedding import limited_embedding
from rules.compat.norm_functional import instance_norm_with_update
from tests.convert.tools import both, rules_of

NORM = """
class M(nn.Module):
    def __init__(self, track=True):
        super().__init__()
        self.track = track
        {mean}
        {var}
        self.w = nn.Parameter(torch.rand(3))

    def forward(self, x):
        return {line}
"""
ALWAYS = 'self.register_buffer("{0}", torch.{1}(3))'
PERHAPS = 'self.register_buffer("{0}", torch.{1}(3) if track else None)'


@pytest.mark.parametrize("register", [ALWAYS, PERHAPS])
@pytest.mark.parametrize(
    "line",
    [
        "F.instance_norm(x, self.m, self.v)",
        "F.instance_norm(x, self.m, self.v, self.w, None, self.training or not self.track, 0.3, 1e-3)",
        "F.instance_norm(x, running_mean=self.m, running_var=self.v, use_input_stats=not self.track)",
        "F.instance_norm(x, weight=self.w) + F.instance_norm(x, None, None, momentum=0.2)",
    ],
)
def test_running_statistics_of_instances(line: str, register: str) -> None:
    source = NORM.format(
        mean=register.format("m", "zeros"), var=register.format("v", "ones"), line=line
    )
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    for track in (True, False):
        model, port, _ = both(source, track)
        for training in (True, False):
            model.train(training)
            port.train() if training else port.eval()
            got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x))
            np.testing.assert_allclose(got, model(torch.tensor(x)).detach(), rtol=1e-4, atol=1e-5)
            state = migrator.to_state_dict(port)
            for name, value in model.state_dict().items():
                np.testing.assert_allclose(state[name], value, rtol=1e-4, atol=1e-6)


def test_statistics_under_another_name_are_named() -> None:
    lines = {one: ALWAYS.format(one[0], of) for one, of in (("mean", "zeros"), ("var", "ones"))}
    source = NORM.format(**lines, line="self.run(x, self.m, self.v)")
    source += "\n    def run(self, x, m, v):\n        return F.instance_norm(x, m, v)\n"
    assert rules_of(source) == ["API002"]


ROWS = """
class M(nn.Module):
    def __init__(self, limit=None):
        super().__init__()
        self.w = nn.Parameter(torch.rand(5, 3) * 4)
        self.e = nn.Embedding(5, 3)
        self.l = nn.Embedding(5, 3, max_norm=0.5)
        self.limit = limit

    def forward(self, i):
        return {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "F.embedding(i, self.w, max_norm=self.limit)",
        "F.embedding(i, self.w, 1, self.limit, 1.0, True)",
        "F.embedding(input=i, weight=self.e.weight, max_norm=0.7)",
        "F.embedding(i, self.w, max_norm=0.7) + F.embedding(i + 1, self.w, max_norm=self.limit)",
        "self.l(i) * 2 + self.l(i + 1)",
    ],
)
def test_rows_are_cut_in_place(line: str) -> None:
    for limit in (None, 0.9):
        model, port, _ = both(ROWS.format(line=line), limit)
        index = torch.tensor([1, 2, 3])
        want = model(index)
        want.sum().backward()

        def loss(module: nnx.Module) -> jax.Array:
            return module(jnp.array([1, 2, 3])).sum()

        got, slopes = nnx.jit(nnx.value_and_grad(loss))(port)
        np.testing.assert_allclose(got, want.sum().detach(), rtol=1e-5)
        slopes = migrator.to_state_dict(slopes, like=port)
        state = migrator.to_state_dict(port)
        for name, value in model.named_parameters():
            np.testing.assert_allclose(state[name], value.detach(), rtol=1e-5)
            slope = torch.zeros_like(value) if value.grad is None else value.grad
            np.testing.assert_allclose(slopes[name], slope, rtol=1e-5)


def test_rows_of_what_is_no_parameter_are_named() -> None:
    line = "F.embedding(i, self.w * 2, max_norm={})"
    assert rules_of(ROWS.format(line=line.format(0.7))) == ["API002"]
    model, port, _ = both(ROWS.format(line=line.format("self.limit")), None)
    want = model(torch.tensor([1, 2, 3])).detach()
    np.testing.assert_allclose(port(jnp.array([1, 2, 3])), want, rtol=1e-6)
    _, port, _ = both(ROWS.format(line=line.format("self.limit")), 0.7)
    with pytest.raises(NotImplementedError, match="max_norm"):
        port(jnp.array([1, 2, 3]))


def test_by_name() -> None:
    table = nnx.Param(jnp.full((2, 4), 2.0))
    rows = limited_embedding(jnp.array([1]), table, max_norm=1.0)
    np.testing.assert_allclose(rows, 0.5, rtol=1e-5)
    np.testing.assert_allclose(table[...][0], 2.0)
    mean, var = nnx.Variable(jnp.zeros(1)), nnx.Variable(jnp.ones(1))
    instance_norm_with_update(jnp.array([[[1.0, 3.0]]]), mean, var)
    np.testing.assert_allclose((mean[...][0], var[...][0]), (0.2, 1.1), rtol=1e-6)
