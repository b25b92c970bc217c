"""Methods and inner functions that initialise what they are handed, and give it back."""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, X, convert, rules_of, sides

PROGRAM = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.ones(4, 4))
        self.q = nn.Parameter(torch.ones(4, 4))
        with torch.no_grad():
            CALL

    def fill(self, w, v):
        BODY

    def forward(self, x):
        return x @ self.p + x @ self.q.t() * 0.5
"""
BODIES = {
    "a chain": "w.zero_().add_(1).mul_(3); return w",
    "several lines": "w.fill_(2).mul_(3); w[0] = 5; return w",
    "a view": "w.view(-1).fill_(4); return w",
    "an early return": "if w.dim() > 3: return w; w.fill_(3); return w",
    "nothing": "w.fill_(3); return",
}
CALLS = {
    "a statement": "self.fill(self.p, self.q)",
    "data": "self.fill(self.p.data, self.q.data)",
    "twice": "self.fill(self.p, self.q); self.fill(self.q, self.p)",
}


def _under(text: str, depth: int) -> str:
    lines = []
    for line in text.split("; "):
        head, colon, rest = line.partition(": ")
        lines.append(f"{head}:\n{'    ' * (depth + 1)}{rest}" if colon else line)
    return ("\n" + "    " * depth).join(lines)


@pytest.mark.parametrize(("body", "call"), list(product(BODIES, CALLS)))
def test_a_method_that_writes_and_gives_back(body: str, call: str) -> None:
    source = PROGRAM.replace("CALL", _under(CALLS[call], 3)).replace(
        "BODY", _under(BODIES[body], 2)
    )
    told, theirs, ours = sides(HEADER + source)
    assert not told
    want = theirs["M"]()(X).detach().numpy()
    np.testing.assert_allclose(
        ours["M"](rngs=nnx.Rngs(0))(jnp.asarray(X.numpy())), want, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("body", ["w.fill_(3); return 1", "w.fill_(3); v.fill_(2); return w"])
def test_a_method_that_gives_something_else_is_refused(body: str) -> None:
    source = PROGRAM.replace("CALL", CALLS["data"]).replace("BODY", _under(body, 2))
    assert "MUT003" in rules_of(source)


INNER = """
import math


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.empty(3, 4))
        self.b = nn.Parameter(torch.empty(4, 3))
        self.reset_parameters()

    def reset_parameters(self):
        def NAME(size, tensor):
            bound = SCALE / math.sqrt(size)
            if tensor is not None:
                tensor.data.uniform_(bound, bound + 1e-6)

        scale = 2.0
        size = self.a.size(0) * 3
        NAME(size, self.a)
        NAME(size, self.b)

    def other(self, x):
        return OTHER

    def forward(self, x):
        return x @ self.a.t() @ self.b.t()
"""


def _inner(name: str = "uniform", scale: str = "1.0", other: str = "x") -> str:
    return INNER.replace("NAME", name).replace("SCALE", scale).replace("OTHER", other)


def test_an_inner_function_that_initialises() -> None:
    result = convert(_inner())
    assert not [one for one in result.findings if one.blocks]
    assert "\ndef uniform(size, tensor, *, rngs: nnx.Rngs):" in result.code
    told, theirs, ours = sides(HEADER + _inner())
    assert not told
    want, got = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    np.testing.assert_allclose(got.a[...], want.a.detach().numpy(), rtol=1e-4)


def test_an_inner_function_that_reads_what_is_around_it_stays() -> None:
    assert "\ndef uniform" not in convert(_inner(scale="scale")).code


def test_an_inner_function_whose_name_means_something_else_stays() -> None:
    assert "\ndef sum(" not in convert(_inner(name="sum", other="sum([x, x])")).code


SIZED = """
class M(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.hidden = hidden
        self.a = nn.Parameter(torch.Tensor(self.hidden))
        self.b = nn.Parameter(torch.Tensor(self.hidden))
        for w in self.parameters():
            w.data.fill_(0.5)

    def forward(self, x):
        return x * self.a + self.b
"""


def test_two_parameters_of_one_size() -> None:
    told, theirs, ours = sides(HEADER + SIZED)
    assert not told
    x = torch.ones(2, 4)
    np.testing.assert_allclose(
        ours["M"](4, rngs=nnx.Rngs(0))(jnp.ones((2, 4))), theirs["M"](4)(x).detach().numpy()
    )


NORM = """
TABLE = {"BN": ("bn", nn.BatchNorm1d), "LN": ("ln", nn.LayerNorm)}


def build(cfg, width):
    cfg = cfg.copy()
    name, layer = TABLE[cfg.pop("type")]
    requires_grad = cfg.pop("requires_grad", True)
    made = layer(width, **cfg)
    for param in made.parameters():
        param.requires_grad = requires_grad
    return name, made


class M(nn.Module):
    def __init__(self, cfg=dict(type="BN", requires_grad=False)):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.name, norm = build(cfg, 4)
        self.add_module(self.name, norm)

    def forward(self, x):
        return getattr(self, self.name)(self.fc(x))
"""


def test_a_norm_by_its_name_that_may_be_frozen() -> None:
    told, theirs, ours = sides(HEADER + NORM)
    assert not told
    assert theirs["M"]().state_dict()
    assert ours["M"](rngs=nnx.Rngs(0))(jnp.asarray(X.numpy())).shape == (3, 4)
