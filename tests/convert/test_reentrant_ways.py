"""Reentrant checkpoints whose inputs have a gradient on some ways that lead there, and none on others."""

from __future__ import annotations

import pytest

from tests.convert.test_reentrant_checkpoints import same_gradients
from tests.convert.tools import convert, rules_of

SOURCE = """
import functools
from torch.utils.checkpoint import checkpoint


def wrapped(f, *args):
    return checkpoint(f, *args)


TWICE
def named(f, x, mask=None):
    return checkpoint(f, x, use_reentrant=True)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(4, 4)
        self.l = nn.Linear(4, 4)
        self.h = nn.Linear(4, 4)
        self.f = nn.Linear(4, 4)
        self.f.requires_grad_(False)
        self.g = nn.Linear(4, 4)
        for p in self.g.parameters():
            p.requires_grad = False
        self.drop = nn.Dropout(0.0)

    def own(self, f, *args):
        return checkpoint(f, *args, use_reentrant=True)

    def take(self, z):
        return checkpoint(self.l, z, use_reentrant=True)

    def forward(self, x):
        y = self.s(x)
        n = y.detach()
        LINES
"""
CALL = "checkpoint(self.l, z, use_reentrant=True)"


TWICE = "def twice(f, x):\n    return wrapped(f, x)\n\n"


def source(lines: str) -> str:
    made = SOURCE.replace("TWICE", TWICE if "twice" in lines else "")
    return made.replace("LINES", lines.replace("; ", "\n        ").replace("CALL", CALL))


@pytest.mark.parametrize(
    ("lines", "cut"),
    [
        ("return self.h(wrapped(self.l, y))", False),
        ("return self.h(wrapped(self.l, n))", True),
        ("return self.h(twice(self.l, n))", True),
        ("return self.h(named(self.l, n))", True),
        ("return self.h(self.own(self.l, n))", True),
        ("return self.h(self.own(lambda a, b: self.l(a) + b, n, n * 2))", True),
        ("return self.h(self.own(lambda a, b: self.l(a) + b, n, y))", False),
        ("args = (n,); return self.h(checkpoint(self.l, *args))", True),
        ("args = (y,); return self.h(checkpoint(self.l, *args))", False),
        ("z = self.f(n); return self.h(CALL)", True),
        ("z = self.drop(self.g(n)); return self.h(CALL)", True),
        ("z = self.f(y); return self.h(CALL)", False),
        ("z = self.drop(y); return self.h(CALL)", False),
        ("z = n; z = y; return self.h(CALL)", False),
        ("z = y; z = n; return self.h(CALL)", True),
        ("z = n\n        for i in range(3):\n            z = CALL; return self.h(z)", True),
        (
            "z = n\n        for i in range(3):\n            z = y * i + z; return self.h(CALL)",
            False,
        ),
        ("z = n if x.ndim == 2 else n * 2; return self.h(CALL)", True),
        ("zs = [n, n * 2]; return self.h(sum(CALL for z in zs))", True),
        ("zs = [y, y * 2]; return self.h(sum(CALL for z in zs))", False),
        ("z = n.clone(); z.mul_(2); return self.h(CALL)", True),
        ("z = n.clone(); z[0] = n[1]; return self.h(CALL)", True),
        ("z = n.clone(); z[0] = y[1]; return self.h(CALL)", False),
        ("z = n.clone(); z += n; return self.h(CALL)", True),
        ("z = n.clone(); z += y; return self.h(CALL)", False),
        ("z = n.clone(); z.requires_grad = True; return self.h(CALL)", False),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_gradient_that_is_there_on_every_way_or_on_none(lines: str, cut: bool) -> None:
    model = same_gradients(source(lines))
    assert (model.l.weight.grad is None) is cut


@pytest.mark.parametrize(
    "lines",
    [
        "return self.h(wrapped(self.l, n)) + wrapped(self.l, y)",
        "return self.h(named(self.l, n)) + named(self.l, y)",
        "return self.h(self.take(n)) + self.take(y)",
        "z = n if x.shape[0] > 5 else y; return self.h(CALL)",
        "z = n\n        if x.shape[0] > 5:\n            z = y; return self.h(CALL)",
        "z = n\n        for i in range(3):\n            z = self.s(CALL); return self.h(z)",
        "z = torch.zeros(3, 4)\n        for i in range(3):\n            z = self.take(z) + y; return self.h(z)",
        "zs = [n, y]; return self.h(sum(CALL for z in zs))",
        "out = 0\n        for z in (n, y):\n            out = out + CALL; return self.h(out)",
        "z = self.f(x); return self.h(CALL)",
        "ck = lambda f, *a: checkpoint(f, *a); return self.h(ck(self.l, n))",
        "ck = functools.partial(checkpoint, self.l); return self.h(ck(n))",
        "z = n\n        for i in range(x.ndim):\n            z = y * i + z; return self.h(CALL)",
        "z = n; return self.h(checkpoint(self.l, z, use_reentrant=self.training))",
    ],
)
def test_a_gradient_that_is_there_on_some_ways_is_a_finding(lines: str) -> None:
    assert rules_of(source(lines)) == ["API002"]


ENCODER = """
import torch.utils.checkpoint as cp


class Layer(nn.Module):
    def __init__(self, dim, again=False):
        super().__init__()
        self.conv = nn.Linear(dim, dim)
        self.again = again

    def forward(self, x, mask=None):
        def inner(x):
            return self.conv(x) + x

        if self.again and x.requires_grad:
            x = cp.checkpoint(inner, x)
        else:
            x = inner(x)
        return x


class Encoder(nn.Module):
    def __init__(self, dim=4, again=False, frozen=-1):
        super().__init__()
        self.embed = nn.Linear(dim, dim)
        self.layers = nn.ModuleList([Layer(dim) for _ in range(2)])
        self.again = again
        if frozen >= 0:
            for p in self.embed.parameters():
                p.requires_grad = False

    def forward(self, x, mask=None):
        x = self.embed(x)
        for layer in self.layers:
            if self.again and self.training:
                x = cp.checkpoint(layer, x, mask)
            else:
                x = layer(x, mask)
        return x


class Model(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.words = nn.Embedding(10, dim)
        self.encoder = Encoder(dim)

    def forward(self, words: torch.LongTensor, mask=None):
        if mask is None:
            mask = torch.ones(words.shape[0], 1)
        return self.encoder(self.words(words), (1.0 - mask[:, :, None]) * -10000.0)
"""


def test_models_as_they_are_published_convert() -> None:
    assert convert(ENCODER).complete
