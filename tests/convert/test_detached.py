"""Writes through ``x.detach()``, which are writes to x past its gradient, as those through ``x.data`` are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import X, both, loaded, rules_of

ZEROED = """def zero_module(module):
    for p in module.parameters():
        p.detach().zero_()
    return module

def scale_module(module, scale):
    for p in module.parameters():
        p.detach().mul_(scale)
    return module

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = zero_module(nn.Linear(4, 4))
        self.b = nn.Linear(4, 4)
        nn.init.constant_(self.b.weight.detach(), 0.5)
        self.b.bias.detach().fill_(1.0).add_(1)
        self.c = scale_module(self.b, 3.0)
        self.d = nn.Parameter(torch.ones(3, 4))
        self.d.detach()[1] = 7.0
        self.d.detach()[2, 1:] *= 2

    def forward(self, x):
        y = self.b(x) + self.d
        y.detach().clamp_(min=16.0)
        return (y * y + self.a(x)).sum(-1)
"""


def test_what_is_filled_through_detach_is_filled() -> None:
    theirs, ours, _ = loaded(ZEROED)
    got = ours["M"](rngs=nnx.Rngs(0))
    import migrator

    state = migrator.to_state_dict(got)
    for name, value in theirs["M"]().state_dict().items():
        np.testing.assert_array_equal(state[name], value.numpy(), err_msg=name)


def test_the_gradient_does_not_see_such_a_write() -> None:
    model, port, _ = both(ZEROED)
    x = X.clone().requires_grad_()
    want = model(x)
    (grad,) = torch.autograd.grad(want.sum(), x)
    array = jnp.asarray(X.numpy())
    np.testing.assert_allclose(port(array), want.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(lambda a: port(a).sum())(array), grad.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "y = x * 2\n    z = y\n    y.detach().zero_()\n    return z",
        "x.detach().zero_()\n    return None",
    ],
)
def test_what_others_see_of_such_a_write_is_a_finding(body: str) -> None:
    assert rules_of(f"def f(x: torch.Tensor):\n    {body}\n")


EMA = """def update(target, source, rate):
    half = rate / 2  # a number, no dtype
    for t, s in zip(target, source):
        t.detach().mul_(half).add_(s, alpha=1 - half)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    @torch.no_grad()
    def step(self):
        update(self.b.parameters(), self.a.parameters(), 0.5)

    def forward(self, x):
        return self.b(x)
"""


def test_parameters_that_go_side_by_side_are_written_one_by_one() -> None:
    model, port, _ = both(EMA)
    model.step()
    port.step()
    want = model(X).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), want, atol=1e-6)


@pytest.mark.parametrize(
    "loop",
    [
        "for p in params:\n        p.mul_(2)",
        "for p in params:\n        p.data.mul_(2)",
        "for p, s in zip(params, others):\n        p.data.copy_(s.data)",
        "for p, s in zip(params, others):\n        p.data = s.data * 2",
        "for name, p in params.items():\n        p.zero_()",
    ],
)
def test_what_something_unknown_holds_is_not_written_behind_its_back(loop: str) -> None:
    assert rules_of(f"def f(params, others):\n    {loop}\n")


WRITTEN = """def written(module, scale):
    for p in module.parameters():
        {line}
    return module
"""


@pytest.mark.parametrize("line", ["p.detach().zero_()", "p.detach().mul_(scale)"])
def test_the_parameters_of_a_module_of_unknown_class_are_written_through_it(line: str) -> None:
    import migrator

    theirs, ours, code = loaded(WRITTEN.format(line=line))
    assert "TODO" not in code
    layer, port = torch.nn.Linear(3, 2), nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, layer.state_dict())
    assert theirs["written"](layer, 0.5) is layer
    assert ours["written"](port, 0.5) is port
    for name, value in migrator.to_state_dict(port).items():
        np.testing.assert_array_equal(value, layer.state_dict()[name].numpy(), err_msg=name)
