"""Stochastic depth that returns early by a draw: both ways are computed in training, and one is taken."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, loaded, rules_of

MODEL = """
class Mlp(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.GELU())

    def forward(self, x):
        return self.net(x)


class M(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.norm = nn.LayerNorm(4)
        self.fc = nn.Linear(4, 4)
        self.mlp = Mlp(4)

    def mixed(self, x):
        return torch.tanh(self.fc(self.norm(x)))

    def forward(self, x):
        {test}
            return x
        {rest}
"""
TESTS = (
    "if self.training and torch.rand(1) < self.p:",
    "if self.training and self.p > torch.rand([]).item():",
    "if self.training and (torch.rand(1).item() <= self.p):",
)
RESTS = (
    "return x + self.mlp(x)",
    "x = x + self.mixed(x)\n        return x + self.mlp(x)",
    "residual = x\n        x = self.mlp(self.norm(x))\n        return self.fc(x) + residual",
)


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("rest", RESTS)
def test_what_is_certain_is_torchs(test: str, rest: str) -> None:
    """Outside of training, and where the draw has one outcome: results and gradients."""
    theirs, ours, _ = loaded(MODEL.format(test=test, rest=rest))
    torch.manual_seed(0)
    given = torch.randn(3, 4)
    for p, train in ((2.0, True), (-1.0, True), (2.0, False)):
        model, port = theirs["M"](p).train(train), ours["M"](p, rngs=nnx.Rngs(0))
        migrator.load_state_dict(port, model.state_dict())
        port.train() if train else port.eval()
        x = given.clone().requires_grad_()
        y = model(x)
        (y * y).sum().backward()

        def loss(port: nnx.Module, x: jax.Array) -> jax.Array:
            return (port(x) ** 2).sum()

        made = nnx.jit(lambda port, x: port(x))(port, jnp.asarray(given.numpy()))
        np.testing.assert_allclose(made, y.detach(), rtol=1e-5, atol=1e-6)
        of_port, of_x = nnx.grad(loss, argnums=(0, 1))(port, jnp.asarray(given.numpy()))
        np.testing.assert_allclose(of_x, x.grad, rtol=1e-4, atol=1e-5)
        grads = migrator.to_state_dict(of_port, like=port)
        for name, value in model.named_parameters():
            want = torch.zeros_like(value) if value.grad is None else value.grad
            np.testing.assert_allclose(grads[name], want, rtol=1e-4, atol=1e-5, err_msg=name)


def test_a_draw_leaves_out_as_often_as_torchs() -> None:
    """In training each call gives x or what the block makes of it; under jit a new draw each time."""
    source = MODEL.format(test=TESTS[0], rest=RESTS[0])
    _, ours, _ = loaded(source)
    port, x = ours["M"](0.25, rngs=nnx.Rngs(3)), jnp.linspace(-1, 1, 8).reshape(2, 4)
    port.eval()
    whole = port(x)
    port.train()
    call = nnx.jit(lambda port, x: port(x))
    made = [np.asarray(call(port, x)) for _ in range(200)]
    left_out = sum(np.allclose(one, x) for one in made)
    assert all(np.allclose(one, x) or np.allclose(one, whole, atol=1e-6) for one in made)
    assert 25 <= left_out <= 75
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("test", "rest"),
    [
        (TESTS[0], "return self.mlp(x)"),  # of another shape perhaps
        (TESTS[0], "self.last = x\n        return x + self.mlp(x)"),
        (TESTS[0], "x += 1\n        return x"),
        (TESTS[0], "x = x.add_(1)\n        return x + self.mlp(x)"),
        (TESTS[0], "print(x.shape)\n        return x + self.mlp(x)"),
        (TESTS[0], "if x.ndim > 2:\n            return x\n        return x + self.mlp(x)"),
        ("if self.training and x.mean() < self.p:", RESTS[0]),
        ("if torch.rand(1) < self.p:", RESTS[0]),
        ("if self.training and torch.rand(3) < self.p:", RESTS[0]),
    ],
)
def test_what_is_not_certain_is_a_finding(test: str, rest: str) -> None:
    assert rules_of(MODEL.format(test=test, rest=rest))


def test_a_decorated_forward_pass_is_a_finding() -> None:
    """What is returned under no_grad has no gradient, which is another's business."""
    source = MODEL.format(test=TESTS[0], rest=RESTS[0])
    last = source.rindex("    def forward")
    assert "DYN002" in rules_of(source[:last] + "    @torch.no_grad()\n" + source[last:])


@pytest.mark.parametrize(
    "other",
    [
        "    def __init__(self):\n        super().__init__(0.5)\n        self.fc = nn.BatchNorm1d(4)\n",
        "    def mixed(self, x):\n        self.last = x\n        return self.fc(x)\n",
    ],
)
def test_a_class_that_others_derive_from_is_a_finding(other: str) -> None:
    source = MODEL.format(test=TESTS[0], rest=RESTS[1])
    assert "DYN002" in rules_of(source + "\n\nclass Other(M):\n" + other)


def test_running_statistics_move_only_where_the_block_runs() -> None:
    source = MODEL.format(test=TESTS[0], rest=RESTS[2])
    assert migrator.convert_source(HEADER + source).complete
    assert "DYN002" in rules_of(source.replace("nn.LayerNorm(4)", "nn.BatchNorm1d(4)"))
    assert "DYN002" in rules_of(source.replace("nn.GELU()", "nn.BatchNorm1d(4)"))
    spectral = source.replace("nn.Linear(4, 4)", "nn.utils.spectral_norm(nn.Linear(4, 4))")
    assert "DYN002" in rules_of(spectral)
