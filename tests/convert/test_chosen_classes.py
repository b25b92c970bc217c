"""A module of one of several own classes: what it gives is what all of them give."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source

SOURCE = """import torch
import torch.nn.functional as F
from torch import nn


class Deep(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim), nn.Linear(dim, dim)])

    def forward(self, x):
        for layer in self.layers:
            x = F.leaky_relu(layer(x), 0.1) + x
        return x


class Flat(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x):
        {last}


class M(nn.Module):
    def __init__(self, kind="flat", n=3):
        super().__init__()
        {choice}
        self.blocks = nn.ModuleList()
        for i in range(n):
            self.blocks.append(block(4))

    def forward(self, x):
        xs = None
        for i in range(len(self.blocks)):
            if xs is None:
                xs = self.blocks[i](x)
            else:
                xs += self.blocks[i](x)
        out = self.blocks[0](x)
        return xs / out.size(0)
"""
CHOICES = [
    "block = Deep if kind == 'deep' else Flat",
    "if kind == 'deep':\n            block = Deep\n        else:\n            block = Flat",
]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kind", ["deep", "flat"])
def test_sums_of_what_they_give(choice: str, kind: str) -> None:
    source = SOURCE.format(last="return self.layer(x)", choice=choice)
    result = convert_source(source)
    assert result.complete
    assert "out.shape[0]" in result.code
    theirs: dict = {}
    exec(source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    torch.manual_seed(0)
    original, port = theirs["M"](kind), ours["M"](kind, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(
        nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x)), want, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    "last", ["return x", "x += self.layer(x)\n        return x", "return x.view(-1, 4)"]
)
def test_one_that_may_give_its_argument_is_a_finding(last: str) -> None:
    result = convert_source(SOURCE.format(last=last, choice=CHOICES[0]))
    assert {f.rule for f in result.findings if f.blocks} <= {"MUT001", "MUT003"}
    assert not result.complete


SHORT = """import torch
from torch import nn


class Own(nn.Module):
    def forward(self, x):
        return x


class M(nn.Module):
    def __init__(self, same=True):
        super().__init__()
        self.short = {}

    def forward(self, x):
        y = self.short(x)
        y += 1
        return y + x
"""


@pytest.mark.parametrize(
    ("short", "complete"),
    [
        ("nn.Identity() if same else nn.Linear(4, 4)", False),
        ("Own() if same else nn.Linear(4, 4)", False),
        ("nn.Sequential(nn.Identity()) if same else nn.Linear(4, 4)", False),
        ("nn.Sequential(nn.Linear(4, 4), nn.ReLU()) if same else nn.Linear(4, 4)", True),
        ("nn.Linear(4, 4, bias=False) if same else nn.LayerNorm(4)", True),
    ],
)
def test_what_one_layer_or_another_gives_is_written(short: str, complete: bool) -> None:
    result = convert_source(SHORT.format(short))
    assert result.complete == complete
    assert complete or [f.rule for f in result.findings if f.blocks] == ["MUT001"]


def test_a_module_that_is_handed_over_may_give_its_argument() -> None:
    source = SHORT.format("same").replace("same=True", "same: nn.Module")
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["MUT001"]
