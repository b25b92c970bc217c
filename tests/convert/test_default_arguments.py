"""Arguments that are None unless they are given, and what stands in for them: ``scale = scale or self.scale``."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from tests.convert.tools import X, both, loaded, rules_of


def test_an_argument_that_stands_for_a_number_or_a_text_unless_it_is_none() -> None:
    """``scale = scale or self.scale`` asks for no tensor's truth."""
    source = """class M(nn.Module):
    def __init__(self, form="abs", scale=2.0):
        super().__init__()
        self.form, self.scale = form, scale
        self.l = nn.Linear(4, 4)

    def forward(self, x, form=None, scale=None, mode=None, sizes=None):
        form = form or self.form
        scale = scale or self.scale
        mode = mode or "sum"
        sizes = sizes or [1, 2]
        y = self.l(x) * scale * len(sizes)
        y = y.abs() if form == "abs" else y
        return y.sum(-1) if mode == "sum" else y
"""
    model, port, _ = both(source)
    port.eval()
    for options in ({}, {"form": "none", "scale": 3.0, "mode": "no", "sizes": [1]}):
        want = model.eval()(X, **options).detach().numpy()
        np.testing.assert_allclose(port(jnp.asarray(X.numpy()), **options), want, rtol=1e-5)


def test_an_argument_that_stands_for_a_tensor_is_asked_for_its_truth() -> None:
    source = "class M(nn.Module):\n    def forward(self, x, mask=None):\n"
    assert rules_of(source + "        mask = mask or x.abs()\n        return x * mask\n") == [
        "DYN002"
    ]


def test_an_argument_that_somebody_says_is_a_tensor_is_asked_for_its_truth() -> None:
    hinted = "class M(nn.Module):\n    def forward(self, x, s: torch.Tensor = None):\n"
    assert rules_of(hinted + "        s = s or 2.0\n        return x * s\n") == ["DYN002"]


def test_a_function_of_torch_by_default_is_not_the_one_that_is_handed_over() -> None:
    """No call in the file hands over another; whoever uses it may."""
    source = """
class M(nn.Module):
    def __init__(self, act=F.relu, pool=torch.amax):
        super().__init__()
        self.act = act
        self.pool = pool

    def forward(self, x):
        return self.pool(self.act(x), 1)


def g(x: torch.Tensor, fn=torch.exp):
    return fn(x).sum(-1)


def k(x: torch.Tensor, fn=F.softmax):
    return fn(x, dim=-1)


def use(x: torch.Tensor):
    return g(x, torch.exp) + k(x).mean()
"""
    theirs, ours, _ = loaded(source)
    array = jnp.asarray(X.numpy())
    want = theirs["M"](torch.sin, torch.amin)(X)
    np.testing.assert_allclose(
        ours["M"](jnp.sin, lambda a, axis: a.min(axis), rngs=nnx.Rngs(0))(array), want, rtol=1e-5
    )
    for name, fn, other in (("g", torch.sin, jnp.sin), ("use", None, None)):
        given = (fn,) if fn else ()
        port = (other,) if other else ()
        np.testing.assert_allclose(
            ours[name](array, *port), theirs[name](X, *given), rtol=1e-5, atol=1e-6
        )
    got = ours["k"](array, lambda a, dim: a * dim)
    np.testing.assert_allclose(got, theirs["k"](X, lambda a, dim: a * dim))
