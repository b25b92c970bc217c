"""Writes to what a layer of one's own gives, which may be what it is handed: refused, or torch's result.

What the layer gives, how it is called, and what is done then. A few are drawn by the day, or by PROGRAMS_SEED; all are
tried in the sweep.
"""

from __future__ import annotations

import datetime
import itertools
import os
import random
import warnings

import pytest

from tests.convert.test_ways_to_a_tensor import compare

HEAD = """import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def same(x):
    return x


def run(f, x):
    return f(x)


class Pair(NamedTuple):
    x: torch.Tensor
    k: int


@dataclass
class Data:
    x: torch.Tensor


class Wrap(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


class F(nn.Module):
    def __init__(self):
        super().__init__()
        INIT

    def forward(self, x):
        BODY


class Sub(F):
    def forward(self, x):
        return super().forward(x)


"""
GIVEN = [
    ("pass", "return x", "{}"),
    ("pass", "return x[:, :2]", "{}"),
    ("pass", "return x, 1", "{}[0]"),
    ("pass", "return {'a': x}", "{}['a']"),
    ("pass", "return Pair(x, 1)", "{}.x"),
    ("pass", "return Data(x)", "{}.x"),
    ("self.k = False", "if self.k:\n            x = x * 2\n        return x", "{}"),
    ("self.a = nn.Identity()", "return self.a(x)", "{}"),
    ("self.a = nn.Sequential()", "return self.a(x)", "{}"),
    ("self.a = nn.ModuleList()", "for a in self.a:\n            x = a(x)\n        return x", "{}"),
    ("self.a = None", "return self.a(x) if self.a is not None else x", "{}"),
    ("self.a = {'i': nn.Identity, 't': nn.Tanh}['i']()", "return self.a(x)", "{}"),
    ("self.a = lambda t: t", "return self.a(x)", "{}"),
    ("self.a = same", "return self.a(x)", "{}"),
    ("pass", "return self.go(x)\n\n    @staticmethod\n    def go(t):\n        return t", "{}"),
    ("self.a = nn.Identity()", "return checkpoint(self.a, x, use_reentrant=False)", "{}"),
    ("pass", "self.last = x\n        return self.last", "{}"),
    ("pass", "a, b = x.chunk(2, 1)\n        return a", "{}"),
    ("pass", "return next(iter([x]))", "{}"),
    ("pass", "return (lambda *a: a[0])(x)", "{}"),
    ("pass", "return x * 1", "{}"),
    ("self.a = nn.Tanh()", "return self.a(x)", "{}"),
]
CALLS = [
    ("self.f = F()", "self.f(x)"),
    ("self.f = F()", "self.f.forward(x)"),
    ("self.f = nn.Sequential(F())", "self.f(x)"),
    ("self.f = nn.Sequential(nn.Identity(), F())", "self.f(x)"),
    ("self.f = nn.ModuleList([F()])", "self.f[0](x)"),
    ("self.f = nn.ModuleDict({'a': F()})", "self.f['a'](x)"),
    ("self.f = F()", "run(self.f, x)"),
    ("self.f = F()", "functools.partial(self.f, x)()"),
    ("self.f = Wrap(F())", "self.f(x)"),
    ("self.f = F()", "checkpoint(self.f, x, use_reentrant=False)"),
    ("self.f = F()", "(lambda t: self.f(t))(x)"),
    ("self.f = F()", "list(map(self.f, [x]))[0]"),
    ("self.f = F()", "(self.f(x) if self.f is not None else x)"),
    ("self.f = F()", "self.f(x=x)"),
    ("self.f = F()", "self.f(*[x])"),
    ("self.f = F()", "F.forward(self.f, x)"),
    ("self.f = F()", "F.__call__(self.f, x)"),
    ("self.f = F()", "F.forward(*[self.f, x])"),
    ("self.f = Sub()", "self.f(x)"),
    ("self.f = F()", "[self.f(x), self.f(x)][1]"),
]
USES = [
    "y += 1\n        return x",
    "x += 1\n        return y",
    "y.mul_(2)\n        return x + y.sum()",
]
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))


def _try(given: tuple[str, str, str]) -> int:
    init, body, taken = given
    head = HEAD.replace("INIT", init).replace("BODY", body)
    cases = [*itertools.product(CALLS, USES)]
    bodies = [f"y = {taken.format(call)}\n        {use}" for (_, call), use in cases]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compare(head, bodies, [made for (made, _), _ in cases])


def test_what_a_layer_gives_today() -> None:
    for given in random.Random(SEED).sample(GIVEN, 3):
        _try(given)


@pytest.mark.parametrize("given", GIVEN[-2:])
def test_what_a_layer_makes_anew_is_its_own(given: tuple[str, str, str]) -> None:
    assert _try(given) >= 30


@pytest.mark.sweep
@pytest.mark.parametrize("given", GIVEN[:-2])
def test_all_that_a_layer_may_give(given: tuple[str, str, str]) -> None:
    _try(given)
