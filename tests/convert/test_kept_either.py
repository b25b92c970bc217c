"""Attributes that keep a layer, or else a function of the module that is only called."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import X, both, check, convert, rules_of

HEAD = """class Table(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.emb = nn.Embedding(n, dim)


"""
TIED = (
    HEAD
    + """class M(nn.Module):
    def __init__(self, tied=True):
        super().__init__()
        self.table = Table(7, 4)
        self.to_logits = nn.Linear(4, 7) if not tied else lambda t: t @ self.table.emb.weight.t()

    def forward(self, x):
        return self.to_logits(torch.tanh(x))
"""
)
CHOSEN = """class M(nn.Module):
    def __init__(self, how="adam"):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4) * 3)
        if how == "adam":
            self.pre = self.adam
        elif how == "rms":
            self.pre = self.rms
        elif how == "layer":
            self.pre = LAYER
        else:
            self.pre = lambda x, t=2: x * t

    def adam(self, x, t=1):
        return x * self.w / (t + 1)

    def rms(self, x, t=1):
        return x / (self.w + t)

    def forward(self, x):
        return self.pre(x) + self.pre(x * 2)
"""
WRITTEN = """def shift(layer):
    nn.init.constant_(layer.bias, 0.5)


class M(nn.Module):
    def __init__(self, use=True):
        super().__init__()
        self.em = nn.Linear(4, 6)
        if use:
            self.project = lambda d: d @ self.em.weight
        else:
            self.project = nn.Linear(6, 4)
            nn.init.ones_(self.project.weight)
            shift(self.project)

    def forward(self, x):
        return self.project(self.em(x)) if self.project is not None else x
"""


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("source", [TIED, WRITTEN])
def test_a_layer_or_a_function_that_reads_the_module(source: str, given: bool) -> None:
    check(source, given)


@pytest.mark.parametrize("how", ["adam", "rms", "layer", "none"])
@pytest.mark.parametrize("layer", ["nn.LayerNorm(4)", "self.adam"])
def test_methods_and_functions(how: str, layer: str) -> None:
    check(CHOSEN.replace("LAYER", layer), how)


def test_functions_alone_are_handed_the_module() -> None:
    code = convert(CHOSEN.replace("LAYER", "self.rms")).code
    assert "self.pre = type(self).adam" in code
    assert "self.pre = lambda self, x, t=2: x * t" in code
    assert "return self.pre(self, x) + self.pre(self, x * 2)" in code


@pytest.mark.parametrize("layer", ["nn.ReLU()", "torch.tanh", "nn.Identity()", "[self.rms][0]"])
def test_what_becomes_a_plain_function_is_not_told_from_one_of_the_module(layer: str) -> None:
    assert rules_of(CHOSEN.replace("LAYER", layer))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self.pre(x) +", "f = self.pre\n        return f(x) +"),
        ("return self.pre(x) +", "self.pre = self.rms\n        return self.pre(x) +"),
        ("return self.pre(x) +", 'return getattr(self, "pre")(x) +'),
    ],
)
def test_what_is_not_only_called(old: str, new: str) -> None:
    assert "API001" in rules_of(CHOSEN.replace("LAYER", "self.rms").replace(old, new))


def test_gradients_reach_the_weights_of_the_module() -> None:
    model, port, _ = both(TIED, True)
    model(X).sum().backward()
    found = nnx.grad(lambda m: m(jnp.asarray(X.numpy())).sum())(port)
    want = model.table.emb.weight.grad
    assert want is not None
    assert want.abs().sum() > 0
    np.testing.assert_allclose(found.table.emb.embedding[...], want, rtol=1e-5)
