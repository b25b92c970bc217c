"""What is settled before a program runs: options nobody gives, initialisers that are tried, defaults of embeddings."""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, sides

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(5))
ASKED = {
    "if": "if scale: w = scale.expand_as(w) * w",
    "not": "if not scale: return w; w = scale.expand_as(w) * w",
    "if else": "w = scale.expand_as(w) * w if scale else w",
    "and": "if on and scale: w = scale.expand_as(w) * w",
}
PROGRAM = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def scaled(self, w, scale=None, on=True):
        ASKED
        return w

    def forward(self, x):
        return CALL
"""
NOT_GIVEN = ["self.scaled(self.fc(x))", "self.scaled(self.fc(x), None)", "self.scaled(x, on=False)"]
GIVEN = [
    "self.scaled(self.fc(x), x.mean())",
    "self.scaled(self.fc(x)) + self.scaled(x, scale=x.mean())",
    "self.scaled(*[x, x.mean()])",
    "getattr(self, 'scaled')(x, x.mean())",
    "(lambda f: f(x, x.mean()))(self.scaled)",
]


def _program(asked: str, call: str) -> str:
    lines = asked.replace(": return w; ", ": return w\n        ")
    return HEADER + PROGRAM.replace("ASKED", lines).replace("CALL", call)


@pytest.mark.parametrize(("asked", "call"), list(product(ASKED, NOT_GIVEN)))
def test_an_option_that_nobody_gives(asked: str, call: str) -> None:
    told, theirs, ours = sides(_program(ASKED[asked], call))
    assert not told
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    port.fc.kernel[...] = jnp.asarray(model.fc.weight.detach().numpy().T)
    port.fc.bias[...] = jnp.asarray(model.fc.bias.detach().numpy())
    made = nnx.jit(lambda module, x: module(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(made, model(X).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("call", GIVEN)
def test_one_that_somebody_may_give(call: str) -> None:
    text = _program(ASKED["if"], call)
    told, _, _ = sides(text)
    assert any("if scale" in text.splitlines()[line - 1] for line in told)


TRIED = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.scale = nn.Parameter(torch.tensor(2.0))
        for name, p in self.named_parameters():
            try:
                INIT
            except CAUGHT:
                pass

    def forward(self, x):
        return self.norm(self.fc(x)) * self.scale
"""
INITS = [
    "nn.init.xavier_normal_(p.data)",
    "torch.nn.init.xavier_uniform_(p)",
    "nn.init.kaiming_normal_(p, a=0.1)",
    "nn.init.orthogonal_(p)",
]


@pytest.mark.parametrize("init", INITS)
@pytest.mark.parametrize("caught", ["", "ValueError", "Exception"])
def test_initialisers_that_are_tried(init: str, caught: str) -> None:
    text = TRIED.replace("INIT", init).replace(" CAUGHT", f" {caught}" if caught else "")
    told, theirs, ours = sides(HEADER + text)
    assert not told
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    assert not port.norm.bias[...].any()
    assert not model.norm.bias.any()
    assert port.scale[...] == model.scale.item() == 2.0
    assert np.std(port.fc.kernel[...]) == pytest.approx(model.fc.weight.std().item(), rel=0.8)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("pass", "nn.init.zeros_(p)"),
        ("INIT", "nn.init.xavier_normal_(p, gain=float(name))"),
        ("INIT", "nn.init.uniform_(p, 1, 0)"),
        ("CAUGHT", "RuntimeError"),
        ("for name, p in self.named_parameters():", "for p in [self.fc.weight, self.norm.bias]:"),
        (
            "for name, p in self.named_parameters():",
            "for p in [m.weight for m in self.children()]:",
        ),
    ],
)
def test_what_is_tried_for_another_reason(old: str, new: str) -> None:
    text = TRIED.replace(old, new).replace("INIT", INITS[0]).replace(" CAUGHT", "")
    told, _, _ = sides(HEADER + text)
    assert told


EMBEDDED = """def looked_up(embed, i):
    return F.embedding(i, embed.weight * 2, embed.padding_idx, embed.max_norm, embed.norm_type,
                       embed.scale_grad_by_freq, embed.sparse)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4GIVEN)

    def forward(self, x):
        return looked_up(self.embed, x.argmax(-1))
"""


def test_options_of_an_embedding_that_has_none() -> None:
    told, theirs, ours = sides(HEADER + EMBEDDED.replace("GIVEN", ", padding_idx=1"))
    assert not told
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    port.embed.embedding[...] = jnp.asarray(model.embed.weight.detach().numpy())
    made = nnx.jit(lambda module, x: module(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(made, model(X).detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("given", [", max_norm=1.0", ", None, 1.0", ", scale_grad_by_freq=True"])
def test_options_that_it_has(given: str) -> None:
    told, _, _ = sides(HEADER + EMBEDDED.replace("GIVEN", given))
    assert told
