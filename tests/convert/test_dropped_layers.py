"""LayerDrop: a layer that a loop leaves out by a draw in training is computed in any case, and its result taken or not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, loaded, rules_of

LAYER = """
import random

import numpy as np


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None, weights: bool = False):
        if x.shape[-1] != 4:
            raise ValueError(f"4 features, not {x.shape}")
        y = self.norm(x + torch.tanh(self.fc(x)))
        if weights:
            return y, y.mean(-1)
        return (y, None)


class M(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.layers = nn.ModuleList([Layer(4) for _ in range(3)])

    def forward(self, x, weights: bool = False):
        every = () if weights else None
        seen = []
        x = x * 2
        for i, layer in enumerate(self.layers):
"""
END = """
        return x, every, seen
"""
LINES = {
    "continue": """
            if self.training and torch.rand([]) < self.p:
                continue
            out = layer(x, weights=weights)
            x = out[0]
            if weights:
                every += (out[1],)
    """,
    "drawn under training": """
            if self.training:
                chance = torch.rand(1)
                if chance < self.p:  # left out
                    continue
            x, other = layer(x, None, weights)
            if weights:
                seen.append(other)
    """,
    "not both": """
            if not (self.training and torch.rand(1).item() <= self.p):
                x, _ = layer(x)
    """,
    "either": """
            chance = torch.rand(1)
            if not self.training or (chance > self.p):
                x = layer(x)[0]
    """,
    "named": """
            chance = torch.rand([])
            skip = True if self.training and (chance < self.p) else False
            if not skip:
                out = layer(x, weights=weights)
                x = out[0]
            if skip:
                out = (None, None)
            if weights:
                every = every + (out[1],)
    """,
    "set": """
            drop = False
            if self.training:
                chance = torch.rand([])
                if chance < self.p:
                    drop = True
            if drop:
                out = (None, None)
            else:
                y = layer(x, weights=weights)
                out = (y[0], y[1])
                x = out[0]
            if weights:
                every = every + (out[1],)
    """,
    "of numpy": """
            chance = np.random.random()
            if not self.training or (chance > self.p):
                x, other = layer(x, weights=weights)
                if weights:
                    seen.append((x, other))
    """,
    "of Python": """
            chance = random.uniform(0, 1)
            if self.training and (chance < self.p):
                continue
            x = layer(x)[0]
    """,
    "of Python, under training": """
            if self.training:
                chance = random.random()
                if chance < self.p:
                    continue
            x = layer(x)[0]
    """,
    "options within": """
            if not (self.training and torch.rand([]) < self.p):
                if weights:
                    x = x + 1
                x = layer(x)[0]
                if i == 1 and not weights:
                    x = x * 2
    """,
}


def source(lines: str) -> str:
    return LAYER + lines.strip("\n").rstrip() + END


def leaves(given: object) -> list[np.ndarray]:
    return [np.asarray(one.detach() if torch.is_tensor(one) else one) for one in _flat(given)]


def _flat(given: object) -> list[object]:
    if isinstance(given, (tuple, list)):
        return [one for part in given for one in _flat(part)]
    return [given] if given is not None else []


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_what_is_certain_is_torchs(lines: str) -> None:
    """Outside of training, and where the draw has one outcome: results, traced ones too, and gradients."""
    theirs, ours, _ = loaded(source(lines))
    torch.manual_seed(0)
    given = torch.randn(2, 4)
    for p, train in ((2.0, True), (-1.0, True), (2.0, False)):
        model, port = theirs["M"](p).train(train), ours["M"](p, rngs=nnx.Rngs(0))
        migrator.load_state_dict(port, model.state_dict())
        port.train() if train else port.eval()
        x = given.clone().requires_grad_()
        y = model(x)[0]
        (y * y).sum().backward()
        array = jnp.asarray(given.numpy())
        made = nnx.jit(lambda port, x: port(x)[0])(port, array)
        np.testing.assert_allclose(made, y.detach(), rtol=1e-5, atol=1e-6)
        for weights in (False, True):  # where nothing is traced
            want, got = model(given, weights), port(array, weights)
            assert [type(one) for one in want[1:]] == [type(one) for one in got[1:]]
            assert len(want[1] or ()) == len(got[1] or ())
            for one, other in zip(leaves(want), leaves(got), strict=True):
                np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)

        def loss(port: nnx.Module, x: jax.Array) -> jax.Array:
            return (port(x)[0] ** 2).sum()  # type: ignore[operator]

        of_port, of_x = nnx.grad(loss, argnums=(0, 1))(port, array)
        np.testing.assert_allclose(of_x, x.grad, rtol=1e-4, atol=1e-5)
        grads = migrator.to_state_dict(of_port, like=port)
        for name, value in model.named_parameters():
            expected = torch.zeros_like(value) if value.grad is None else value.grad
            np.testing.assert_allclose(grads[name], expected, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
@pytest.mark.parametrize("traced", [True, False])
def test_each_layer_is_left_out_by_a_draw_of_its_own(lines: str, traced: bool) -> None:
    _, ours, _ = loaded(source(lines))
    port, x = ours["M"](0.25, rngs=nnx.Rngs(3)), jnp.linspace(-1, 1, 8).reshape(2, 4)
    port.eval()
    parts = list(port.layers)
    whole = {}
    for kept in np.ndindex(2, 2, 2):
        ways = nnx.List([one for one, keep in zip(parts, kept, strict=True) if keep])
        y = x * 2
        for i, one in enumerate(parts):
            if kept[i]:
                y = one(y)[0]
                y = y * 2 if i == 1 and "i == 1" in lines else y
        whole[kept] = np.asarray(y)
        del ways
    port.train()
    call = nnx.jit(lambda port, x: port(x)[0]) if traced else lambda port, x: port(x)[0]
    seen = dict.fromkeys(whole, 0)
    rounds = 120 if traced else 40
    for _ in range(rounds):
        made = call(port, x)
        fits = [k for k, one in whole.items() if np.allclose(one, made, atol=1e-5)]
        assert len(fits) == 1
        seen[fits[0]] += 1
    for place in range(3):
        out = sum(n for kept, n in seen.items() if not kept[place])
        assert 0.1 * rounds <= out <= 0.42 * rounds


NOT_CERTAIN = {
    "of another test": "if self.training and x.mean() < self.p:\n    continue\nx = layer(x)[0]",
    "in any mode": "if torch.rand([]) < self.p:\n    continue\nx = layer(x)[0]",
    "of several": "if self.training and (torch.rand(2) < self.p).any():\n    continue\nx = layer(x)[0]",
    "of a tensor": "if self.training and torch.rand([]) < x.mean():\n    continue\nx = layer(x)[0]",
    "writes": "if self.training and torch.rand([]) < self.p:\n    continue\nself.last = x\nx = layer(x)[0]",
    "appends": "if self.training and torch.rand([]) < self.p:\n    continue\nseen.append(x)\nx = layer(x)[0]",
    "ends": "if self.training and torch.rand([]) < self.p:\n    continue\nx = layer(x)[0]\nif weights:\n    break",
    "no tensor before": "if self.training and torch.rand([]) < self.p:\n    continue\ny = layer(x)[0]\nevery = y",
    "in place": "if self.training and torch.rand([]) < self.p:\n    continue\nx.add_(layer(x)[0])",
    "asked again": (
        "skip = self.training and torch.rand([]) < self.p\n"
        "if not skip:\n    x = layer(x)[0]\nseen.append(skip)"
    ),
    "results read anyhow": (
        "skip = self.training and torch.rand([]) < self.p\n"
        "if not skip:\n    out = layer(x)\n    x = out[0]\n"
        "if skip:\n    out = (None, None)\nseen.append(out[1])"
    ),
    "results read by a tensor's test": (
        "skip = self.training and torch.rand([]) < self.p\n"
        "if not skip:\n    out = layer(x)\n    x = out[0]\n"
        "if skip:\n    out = (None, None)\nif x.mean() > 0:\n    every = out[1]"
    ),
    "needs what stands under a test": (
        "if self.training and torch.rand([]) < self.p:\n    continue\n"
        "if weights:\n    more = x\n    seen.append(x)\nx = layer(x)[0] + (more if weights else 0)"
    ),
}


@pytest.mark.parametrize("lines", NOT_CERTAIN.values(), ids=NOT_CERTAIN)
def test_what_is_not_certain_is_a_finding(lines: str) -> None:
    indented = "\n".join(" " * 12 + line for line in lines.splitlines())
    assert rules_of(source(indented))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.norm = nn.LayerNorm(dim)", "self.norm = nn.BatchNorm1d(dim)"),
        ("        y = self.norm", "        self.last = x\n        y = self.norm"),
        ("        y = self.norm", "        print('layer')\n        y = self.norm"),
        ("nn.Linear(dim, dim)", "nn.utils.spectral_norm(nn.Linear(dim, dim))"),
        ("class M(", "class More(Layer):\n    pass\n\n\nclass M("),
        ("Layer(4) for _ in range(3)", "Layer(4), nn.BatchNorm1d(4)"),
    ],
)
def test_a_layer_that_does_more_is_a_finding(old: str, new: str) -> None:
    made = source(LINES["continue"])
    assert old in made
    assert migrator.convert_source(HEADER + made).complete
    assert "DYN002" in rules_of(made.replace(old, new))


def test_findings_stand_where_they_are() -> None:
    """The lines below a loop that is read as another one keep their numbers."""
    made = source(LINES["set"]).replace(
        "return x, every", "n = x.sum().item()\n        return x[:n], every"
    )
    found = [f for f in migrator.convert_source(HEADER + made).findings if f.rule == "DYN004"]
    lines = (HEADER + made).splitlines()
    assert [lines[one.line - 1].strip() for one in found] == ["n = x.sum().item()"]


@pytest.mark.parametrize("lines", ["of numpy", "of Python"])
def test_what_python_draws_for_a_layer_that_does_more_stays_its_draw(lines: str) -> None:
    made = source(LINES[lines]).replace(
        "        y = self.norm", "        self.last = 1\n        y = self.norm"
    )
    found = migrator.convert_source(HEADER + made)
    assert "TRC005" in [one.rule for one in found.findings]
    assert "left_out(" not in found.code


def test_normed_weights_are_made_anew() -> None:
    """A layer with weight_norm changes nothing else when it is called."""
    made = source(LINES["continue"]).replace(
        "nn.Linear(dim, dim)", "nn.utils.weight_norm(nn.Linear(dim, dim))"
    )
    theirs, ours, _ = loaded(made)
    model, port = theirs["M"](-1.0).train(), ours["M"](-1.0, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    made_here = nnx.jit(lambda port, x: port(x)[0])(port, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(made_here, model(x)[0].detach(), rtol=1e-5, atol=1e-6)


def test_what_else_python_draws_stays_its_draw() -> None:
    lines = LINES["of numpy"].replace(
        "chance = ",
        "noise = np.random.random()\n            seen.append(int(noise * 3))\n            chance = ",
        1,
    )
    code = migrator.convert_source(HEADER + source(lines)).code
    assert "noise = np.random.random()" in code
    assert "not self.deterministic and self.rngs.uniform(()) <= self.p" in code


def test_outside_of_training_nothing_is_drawn_and_comments_stay() -> None:
    lines = LINES["of Python"].replace("chance =", "# LayerDrop\n            chance =", 1)
    _, ours, code = loaded(source(lines))
    assert "# LayerDrop\n" in code
    port = ours["M"](0.5, rngs=nnx.Rngs(0))
    port.eval()
    before = port.rngs.default.count[...]
    port(jnp.ones((2, 4)))
    assert port.rngs.default.count[...] == before


@pytest.mark.parametrize("lines", [LINES["named"], LINES["not both"], LINES["set"]])
def test_analyze_says_what_convert_does(lines: str) -> None:
    found = [f for f in migrator.analyze_source(HEADER + source(lines)) if f.rule.startswith("DYN")]
    assert found
    assert not any(one.blocks for one in found)
    assert all("computes the layer in any case" in one.message for one in found)
