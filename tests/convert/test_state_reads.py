"""State that is read before the call which updates it: in torch the tensor that was read has the new value."""

from __future__ import annotations

import textwrap

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both, rules_of

NORM = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(4)
        self.fc = nn.Linear(4, 4)

    def norm(self, x):
        return self.bn(x)

    def forward(self, x):
"""
COUNTER = """
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
"""


def _rules(head: str, lines: str) -> list[str]:
    return rules_of(head + textwrap.indent(textwrap.dedent(lines), " " * 8))


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        (NORM, "m = self.bn.running_mean\ny = self.bn(x)\nreturn y + m\n"),
        (NORM, "m = self.bn.running_var.view(1, -1)\ny = self.norm(x)\nreturn y + m\n"),
        (NORM, "m = self.bn.running_mean\nreturn self.bn(x) + m\n"),
        (NORM, "return self.bn.running_mean + self.bn(x)\n"),
        (NORM, "m = self.bn.running_mean\nfor _ in range(2):\n    x = self.bn(x + m)\nreturn x\n"),
        (COUNTER, "n = self.sub.count\ny = self.sub(x)\nreturn y * n\n"),
    ],
)
def test_read_before_and_used_after_the_update(head: str, lines: str) -> None:
    assert rules_of(head + "        return x\n") == []
    assert _rules(head, lines) == ["MUT001"]


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        (NORM, "m = self.bn.running_mean.clone()\ny = self.bn(x)\nreturn y + m\n"),
        (NORM, "m = self.bn.running_mean\ny = self.fc(x) + m\nreturn self.bn(y)\n"),
        (NORM, "return self.bn(x) + self.bn.running_mean\n"),
        (NORM, "return self.bn.running_mean * 2 + self.bn(x)\n"),
        (NORM, "m = self.fc.bias\ny = self.bn(x)\nreturn y + m\n"),
        (COUNTER, "y = self.sub(x)\nn = self.sub.count\nreturn self.fc(y) * n\n"),
    ],
)
def test_no_update_between(head: str, lines: str) -> None:
    assert _rules(head, lines) == []


DECLARED = """
from typing import Optional


class Base(nn.Module):
    mean: torch.Tensor
    scale: Optional[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.bank: torch.Tensor
        self.register_buffer("bank", torch.empty(4, 4))
        self.steps: torch.Tensor
        self.register_buffer("steps", torch.empty(1, dtype=torch.long))
        self.register_buffer("mean", torch.zeros(4))
        self.scale = nn.Parameter(torch.ones(4))
        self.shift: torch.Tensor
        self.shift = nn.Parameter(torch.ones(4))
        self.start()

    def start(self):
        self.bank = torch.ones(4, 4).type_as(self.bank)
        self.steps = torch.zeros(1).type_as(self.steps)

    def forward(self, x):
        self.mean = 0.5 * self.mean + 0.5 * x.mean(0).detach()
        self.steps += 1
        return (x - self.mean) * self.scale + self.shift


class M(Base):
    bank: torch.Tensor

    def forward(self, x):
        y = super().forward(x) @ self.bank
        self.bank = self.bank * 2
        self.bank[0] = x[0].detach()
        return y * self.steps
"""


def test_what_a_class_says_a_buffer_is_gives_it_no_value() -> None:
    model, port, _ = both(DECLARED)
    assert set(migrator.to_state_dict(port)) == set(model.state_dict())
    run = nnx.jit(lambda m, x: m(x))
    for _ in range(3):
        found, want = run(port, jnp.asarray(X.numpy())), model(X)
        np.testing.assert_allclose(found, want.detach(), rtol=1e-5)
    for name, value in migrator.to_state_dict(port).items():
        np.testing.assert_allclose(value, model.state_dict()[name].numpy(), rtol=1e-5)


STANDARDISED = """
class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))
        self.gain = nn.Parameter(torch.ones(4))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("var", torch.ones(4))

    def forward(self, x):
        return F.linear(x, F.batch_norm(self.weight.view(1, 4, -1), GIVEN).view(4, 4))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()

    def forward(self, x):
        m = self.sub.mean
        w = self.sub.gain.view(-1)
        return self.sub(x) + RESULT
"""


@pytest.mark.parametrize(
    ("given", "result", "rules"),
    [
        ("None, None, weight=self.gain.view(-1), training=True", "w", []),
        ("None, None, self.gain, training=True", "w + m", []),
        ("self.mean, self.var, self.gain, training=False", "w", []),
    ],
)
def test_of_what_a_function_is_given_it_updates_the_statistics(
    given: str, result: str, rules: list[str]
) -> None:
    source = STANDARDISED.replace("GIVEN", given).replace("RESULT", result)
    assert rules_of(source) == rules


def test_statistics_that_a_function_updates() -> None:
    source = STANDARDISED.replace("GIVEN", "self.mean, self.var, training=self.training")
    assert rules_of(source.replace("RESULT", "w")) == []
    assert rules_of(source.replace("RESULT", "m")) == ["MUT001"]
