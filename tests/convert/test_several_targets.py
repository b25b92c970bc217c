"""``self.h, self.c = cell(x)``: Variables among several targets are written, not replaced."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source
from tests.convert.tools import X, both, check, loaded, rules_of, same

SOURCE = """
import math

import torch
import torch.nn as nn


class S1(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(2, 3))
        self.register_buffer("c", torch.zeros(2, 3))
        self.cell = nn.LSTMCell(4, 3)
    def forward(self, x):
        self.h, self.c = self.cell(x, (self.h, self.c))
        return self.h


class S2(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("m", torch.zeros(4))
        self.register_buffer("v", torch.ones(4))
    def forward(self, x):
        self.m, self.v = x.mean(0), self.m + 1
        self.m, k = self.m * 2, 3
        return x * k - self.m / self.v


class S3(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(1, 2, 3))
        self.gru = nn.GRU(4, 3, batch_first=True)
    def forward(self, x):
        y, self.h = self.gru(x, self.h)
        self.h = self.h.detach()
        return y


class S4(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("a", torch.zeros(3))
        self.register_buffer("b", torch.ones(3))
    def forward(self, x):
        self.a, self.b = self.b, self.a
        self.a = self.b = x.sum(0)
        return x + self.a + self.b


class S5(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.c = torch.zeros(2, 3), torch.zeros(2, 3)
        self.cell = nn.LSTMCell(4, 3)
    def reset(self, n):
        self.h, self.c = torch.zeros(n, 3), torch.zeros(n, 3)
    def forward(self, x):
        self.reset(x.size(0))
        for i in range(3):
            self.h, self.c = self.cell(x, (self.h, self.c))
        return self.h, self.c


def pe(n, d):
    pos = torch.arange(n).float()[:, None]
    freq = torch.exp(torch.arange(0, d, 2).float() * -(math.log(10000.0) / d))
    pe = torch.zeros(n, d)
    pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * freq), torch.cos(pos * freq)
    return pe


class T1(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        y[0], y[1] = x[1], x[0]
        z = torch.zeros_like(x)
        z[:, 0], (z[:, 1], w) = x.max(1)[0], (x.min(1)[0], 3)
        v = torch.zeros(2, 3)
        v[0], v[1] = x[:, 0].chunk(2)[0].new_ones(3), 5.0
        m = x > 0
        a, b = torch.zeros_like(x), torch.zeros_like(x)
        a[m], b[m] = x[m], 1.0
        return y + pe(x.shape[0], x.shape[1]), z * w, v, a + b


class T2(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[0], k = self.two(x)
        y[1], y[2] = self.two(x)
        return y * k.sum()
    def two(self, x):
        return x[0] * 2, x[1] + 1


class T4(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.zeros(4, 4))
    def forward(self, x):
        self.buf[0], self.buf[1] = x[2].detach(), x[3].detach()
        return x + self.buf


class T5(nn.Module):
    def forward(self, x):
        f = torch.tanh
        X, G, H = torch.zeros(3, 4, 4), torch.zeros(3, 4, 4), torch.zeros(4, 4)
        X[0], G[0] = x, f(x)
        X[1], G[1] = G[0], f(G[0])
        H[0, 1:] = H[1:, 0] = 1
        H[2] = H[3] = last = x[0] * 2
        H[1, 2] = H[2, 1] = x.sum()
        i, row = 1, torch.zeros(5)
        row[i], i = i + 5, 3
        row[i] = 9
        H[0], H[1] = H[1].clone(), H[0] * 2
        G[:, i], X[:, i] = X[:, i].clone(), G[:, i].clone()
        return X, G, H, last, row
"""
BUILT = {
    "S1": (2, 4),
    "S2": (5, 4),
    "S3": (2, 6, 4),
    "S4": (5, 3),
    "S5": (2, 4),
    "T1": (4, 4),
    "T2": (4, 4),
    "T4": (4, 4),
    "T5": (4, 4),
}


@pytest.mark.parametrize("name", BUILT)
def test_the_state_goes_on(name: str) -> None:
    theirs, ours, _ = loaded(SOURCE)
    torch.manual_seed(0)
    original = theirs[name]()
    port = ours[name](rngs=nnx.Rngs(0)) if name not in ("T1", "T2", "T5") else ours[name]()
    migrator.load_state_dict(port, original.state_dict())
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=BUILT[name]).astype(np.float32)
        same(original, port, x, jit=True)
    for key, value in migrator.to_state_dict(port).items():
        kept = original.state_dict()[key].numpy()
        np.testing.assert_allclose(value, kept, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "y[0], y[1] = y[1], y[0]",
        "a, y[0] = x[0], a",
        "y[0], b = y[1] * 2, y",
        "y[0], z[0] = z[1], y[0] + 1",
        "y[0] = y[1] = y[2] + 1",
        "z[0] = y[1] = z[2]",
        "y[0], z[0] = x[0], g()",
        "y[0], y[1] = y[1], y[0].clone()",
    ],
)
def test_parts_that_are_read_as_well_are_a_finding(line: str) -> None:
    """The views of ``y[0], y[1] = y[1], y[0]`` are read after the first write, so that torch swaps nothing."""
    source = (
        "import torch\n\n\ndef f(x: torch.Tensor):\n    y, z = x.clone(), x + 1\n"
        f"    g = lambda: y[1] * 2\n    {line}\n    return y\n"
    )
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["MUT002"]


REST = """class M(nn.Module):
    def __init__(self, sizes: tuple[int, ...] = (4, 4, 2), layers=None):
        super().__init__()
        made = [nn.Linear(4, 4), nn.Linear(4, 4)]
        self.all = nn.ModuleList(made)
        {line}

    def forward(self, x):
        return x * len(self.rest)
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.first, *self.rest = made",
        "[*self.rest, self.last] = layers or made",
        "*self.rest, self.last = torch.eye(3)",
    ],
)
def test_a_rest_that_may_hold_modules_is_a_finding(line: str) -> None:
    assert rules_of(REST.format(line=line)) == ["API008"]


def test_a_rest_of_numbers() -> None:
    check(REST.format(line="self.first, *self.rest = sizes"))


STATES = """
class M(nn.Module):
    def __init__(self, kind="LSTM"):
        super().__init__()
        self.kind = kind
        layer = nn.LSTM if kind == "LSTM" else nn.GRU
        self.rnn = nn.ModuleList([layer(4, 4, 1, batch_first=True) for _ in range(2)])

    def forward(self, x):
        x = x[None]
        h, c = torch.zeros(2, 1, 4), torch.zeros(2, 1, 4)
        before, more = h + 1, c + 0.5
        for i in range(2):
            if self.kind == "LSTM":
                x, (h[i : i + 1], c[i : i + 1]) = self.rnn[i](x, (before[i : i + 1], more[i : i + 1]))
            else:
                x, h[i : i + 1] = self.rnn[i](x, before[i : i + 1])
        return x, h, c
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_states_are_written_where_a_layer_gives_them_beside(kind: str) -> None:
    model, port, _ = both(STATES, kind)
    for mine, theirs in zip(port(X.numpy()), model(X), strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), rtol=1e-5, atol=1e-6)


GIVEN = """
def given(x):
    return x, x * 2


def f(x: torch.Tensor, n: int):
    a, b = x.clone(), x.clone()
    LINE
    return a, b, n
"""


@pytest.mark.parametrize(
    "line",
    [
        "b, a[0] = given(a[1])",  # b is a view of a
        "c = a[1]; b, a[0] = given(c)",
        "a[n], n = 5.0, 0; n, a[n] = max(n, 1), 2.0; a[n], n = divmod(7, 4)",
    ],
)
def test_what_is_given_beside_may_be_what_is_written(line: str) -> None:
    assert set(rules_of(GIVEN.replace("LINE", line))) & {"MUT001", "MUT002"}


def test_what_is_given_beside_is_something_else() -> None:
    theirs, ours, _ = loaded(GIVEN.replace("LINE", "b, a[n] = given(x[1])"))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    for mine, other in zip(
        ours["f"](jnp.asarray(x), 1), theirs["f"](torch.tensor(x), 1), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-6)
