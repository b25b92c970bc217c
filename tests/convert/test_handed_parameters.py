"""Parameters of another module that a constructor is handed and keeps: one parameter under two names."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, rules_of

KEPT = """
class Head(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.size = weight.size(0)

    def forward(self, x):
        return F.linear(x, self.weight) * self.size
"""

OPTIONAL = """
class Head(nn.Module):
    def __init__(self, weight=None):
        super().__init__()
        if weight is None:
            weight = nn.Linear(4, 7, bias=False).weight
        self.weight = weight

    def forward(self, x):
        return F.linear(x, self.weight)
"""

LINEAR = """
class Head(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.decoder = nn.Linear(weight.size(1), weight.size(0), bias=BIAS)
        self.decoder.weight = weight
        self.bias = nn.Parameter(torch.zeros(weight.size(0)))

    def forward(self, x):
        return self.decoder(x) + self.bias + self.decoder.weight.sum()
"""

OUTER = """
class Outer(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.inner = Head(weight)

    def forward(self, x):
        return self.inner(x)
"""

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 4, padding_idx=0)
        self.head = MADE

    def forward(self, i):
        return self.head(self.embed(i))
"""


def same_twice(source: str) -> str:
    """Compare outputs, gradients, names and the number of parameters of ``M`` with those of its conversion."""
    module, port, code = both(source)
    i = torch.tensor([[0, 3, 4], [1, 1, 6]])
    want = module(i)
    (want * torch.arange(want.numel()).reshape(want.shape)).sum().backward()
    assert set(migrator.to_state_dict(port)) == set(module.state_dict())
    assert len(nnx.to_flat_state(nnx.state(port, nnx.Param))) == len(list(module.parameters()))

    def loss(model: nnx.Module) -> tuple[jnp.ndarray, jnp.ndarray]:
        output = model(jnp.asarray(i.numpy()))
        return (output * jnp.arange(output.size).reshape(output.shape)).sum(), output

    (_, got), grads = nnx.jit(nnx.value_and_grad(loss, has_aux=True))(port)
    np.testing.assert_allclose(got, want.detach(), rtol=1e-4, atol=1e-5)
    slopes = migrator.to_state_dict(grads, like=port)
    for name, parameter in module.named_parameters():
        np.testing.assert_allclose(slopes[name], parameter.grad, rtol=1e-4, atol=1e-3)
    return code


@pytest.mark.parametrize("made", ["Head(self.embed.weight)", "Outer(weight=self.embed.weight)"])
@pytest.mark.parametrize(
    "head",
    [
        KEPT,
        KEPT.replace("self.weight = weight", "self.weight: nn.Parameter = weight"),
        OPTIONAL,
        LINEAR.replace("BIAS", "False"),
        LINEAR.replace("BIAS", "True"),
    ],
)
def test_one_parameter(head: str, made: str) -> None:
    same_twice(head + OUTER + MODEL.replace("MADE", made))


def test_one_that_is_left_out() -> None:
    same_twice(OPTIONAL + MODEL.replace("MADE", "nn.Sequential(Head(), nn.ReLU())"))


def test_an_heir_and_a_list() -> None:
    heir = "class Heir(Head):\n    def __init__(self, w):\n        super().__init__(w)\n"
    made = "nn.Sequential(Heir(self.embed.weight), nn.Linear(7, 4), Heir(self.embed.weight))"
    same_twice(KEPT + heir + MODEL.replace("MADE", made))


INIT = """
    def init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            m.weight.data.BOTH
        elif isinstance(m, nn.LayerNorm):
            m.bias.data.zero_()
        if isinstance(m, nn.Linear) and m.bias is not None:
            m.bias.data.zero_()
"""


def _initialised(bias: str, drawn: str) -> str:
    model = MODEL.replace("MADE", "Head(self.embed.weight)\n        self.apply(self.init)")
    return LINEAR.replace("BIAS", bias) + model + INIT.replace("BOTH", drawn)


@pytest.mark.parametrize("drawn", ["normal_(0, 0.02)", "fill_(0.5)", "uniform_(-1, 1)"])
def test_what_draws_both_alike(drawn: str) -> None:
    same_twice(_initialised("False", drawn))


@pytest.mark.parametrize(
    ("bias", "drawn"),
    [("True", "normal_()"), ("False", "mul_(0.5)"), ("False", "fill_(len(m.weight))")],
)
def test_what_does_not(bias: str, drawn: str) -> None:
    assert "API009" in rules_of(_initialised(bias, drawn))


def test_a_branch_for_each() -> None:
    two = "(nn.Linear, nn.Embedding)):\n            m.weight.data.normal_()"
    each = "nn.Linear):\n            m.weight.data.normal_()\n        elif isinstance(m, nn.Embedding):\n            m.weight.data.zero_()"
    source = _initialised("False", "normal_()")
    assert two in source
    assert "API009" in rules_of(source.replace(two, each))


@pytest.mark.parametrize(
    "made",
    [
        "Head(nn.Linear(4, 7).weight)",
        "Head(self.embed.weight); self.other = Head(torch.ones(7, 4))",
        "Head(self.embed.weight); self.embed.weight = nn.Parameter(torch.ones(7, 4))",
        "Head(self.embed.weight if self.training else None)",
        "partial(Head, self.embed.weight)()",
    ],
)
def test_what_is_not_known_to_be_one_parameter(made: str) -> None:
    imported = "from functools import partial\n"
    assert "MUT001" in rules_of(imported + KEPT + MODEL.replace("MADE", made))


@pytest.mark.parametrize(
    "line",
    [
        "self.weight = weight.t()",
        "self.weight = nn.Parameter(weight)",
        "self.weight = weight; nn.init.ones_(weight)",
        "w = weight; self.weight = w",
    ],
)
def test_who_does_more_than_keep_it(line: str) -> None:
    head = KEPT.replace("self.weight = weight", line)
    assert "MUT001" in rules_of(head + MODEL.replace("MADE", "Head(self.embed.weight)"))


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_layer_that_gets_another_weight(order: str) -> None:
    lines = [
        "self.head.weight = self.embed.weight",
        "self.embed.weight = nn.Parameter(torch.ones(7, 4))",
    ]
    made = "nn.Linear(4, 7, bias=False)\n        "
    made += "\n        ".join(lines if order == "after" else lines[::-1])
    source = MODEL.replace("MADE", made)
    if order == "before":
        same_twice(source)
    else:
        assert "MUT001" in rules_of(source)


IN_TURN = """
class Head(nn.Module):
    def __init__(self, weight, scale):
        super().__init__()
        self.weight, self.scale = weight, scale

    def forward(self, x):
        return F.linear(x, self.weight) * self.scale
"""


def test_two_that_are_kept_in_turn() -> None:
    made = "Head(self.embed.weight, scale=nn.Parameter(torch.zeros(7)))"
    same_twice(
        IN_TURN + MODEL.replace("MADE", f"{made}\n        nn.init.constant_(self.head.scale, 0.5)")
    )


@pytest.mark.parametrize(
    ("signature", "line"),
    [
        ("*weights", "self.weight = weights[0]"),
        ("**given", "self.weight = given['weight']"),
        ("weights", "self.weight, self.size = weights"),
        ("weight", "self.weight, self.size = weight, weight.sum()"),
        ("weight", "self.all = nn.ParameterList([weight]); self.weight = self.all[0]"),
        ("weight", "for name, one in (('weight', weight),):\n            setattr(self, name, one)"),
    ],
)
def test_who_keeps_it_by_another_way(signature: str, line: str) -> None:
    head = KEPT.replace("weight):", f"{signature}):").replace("self.weight = weight", line)
    head = head.replace("self.size = weight.size(0)", "self.size = 2")
    given = {"weights": "(self.embed.weight, 2)", "**given": "weight=self.embed.weight"}
    made = f"Head({given.get(signature, 'self.embed.weight')})"
    assert "MUT001" in rules_of(head + MODEL.replace("MADE", made))


@pytest.mark.parametrize(
    "lines",
    [
        "ws = [self.embed.weight]",
        "ws = []; ws.append(self.embed.weight)",
        "ws = [torch.ones(2)]; ws += [self.embed.weight]",
        "ws = [nn.Parameter(torch.ones(2)), *[self.embed.weight]]",
        "ws = tuple([self.embed.weight])",
    ],
)
def test_a_list_of_them_that_a_container_takes(lines: str) -> None:
    made = f"nn.Linear(4, 7)\n        {lines}\n        self.all = nn.ParameterList(ws)"
    assert "API009" in rules_of(MODEL.replace("MADE", made))
