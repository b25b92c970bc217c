"""Tensors that a module keeps and takes out again, in attributes, lists, dicts, objects, buffers and other modules.

How it is kept, how it is taken out, and what is done then; the module is called twice. Each pair is refused or has
torch's result. A few are drawn by the day, or by PROGRAMS_SEED; all are tried in the sweep.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import os
import random
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrator.convert import convert_source
from tests.convert.test_ways_to_a_tensor import REFUSED
from tests.convert.tools import X, convert, rules_of

HEAD = """import torch
from torch import nn


class Obj:
    def __init__(self, x):
        self.x = x

    def get(self):
        return self.x

    def set(self, x):
        self.x = x


class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None
        self.register_buffer("b", torch.zeros(3, 4))

    def put(self, x):
        self.kept = x

    def get(self):
        return self.kept

    def setb(self, x):
        self.b = x

    def forward(self, x):
        self.kept = x
        return x * 2


"""
BODY = """class M{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None
        self.xs = [torch.zeros(3, 4)]
        self.d = {{"a": torch.zeros(3, 4)}}
        self.o = Obj(None)
        self.sub = Sub()
        self.subs = nn.ModuleList([Sub(), Sub()])
        self.register_buffer("b", torch.zeros(3, 4))

    def put(self, x):
        self.kept = x

    def get(self):
        return self.kept

    @property
    def p(self):
        return self.kept

    def last(self):
        return self.xs[-1]

    def setb(self, x):
        self.b = x

    def getb(self):
        return self.b

    def forward(self, x):
        {begin}
        {lines}


"""
BASE, FORWARD = BODY.split("    def forward")
BASE = BASE.format(number="").replace("class M(", "class Base(").rstrip() + "\n\n\n"
DERIVED = "class M{number}(Base):\n    def forward" + FORWARD
SLOTS = {
    "an attribute": (
        [
            "self.kept = X",
            "setattr(self, 'kept', X)",
            "self.put(X)",
            "self.kept, _ = X, 1",
            "self.kept = z = X",
        ],
        ["self.kept", "getattr(self, 'kept')", "self.get()", "self.p"],
    ),
    "a list": (
        [
            "self.xs = [X]",
            "self.xs.append(X)",
            "self.xs[-1] = X",
            "self.xs += [X]",
            "self.xs = self.xs + [X]",
        ],
        ["self.xs[-1]", "self.last()", "[*self.xs][-1]", "[q for q in self.xs][-1]"],
    ),
    "a dict": (
        ["self.d = {'a': X}", "self.d['a'] = X", "self.d.update(a=X)"],
        ["self.d['a']", "self.d.get('a')", "list(self.d.values())[0]"],
    ),
    "an object": (
        ["self.o = Obj(X)", "self.o.x = X", "self.o.set(X)", "o = self.o\n        o.x = X"],
        ["self.o.x", "self.o.get()"],
    ),
    "a module": (
        ["self.sub.kept = X", "self.sub.put(X)", "self.sub(X)"],
        ["self.sub.kept", "self.sub.get()"],
    ),
    "a buffer": (
        [
            "self.b = X",
            "self.b.copy_(X)",
            "self.b[:] = X",
            "self.b.data = X",
            "self.b.data.copy_(X)",
            "self.b += X",
            "self.b.add_(X)",
            "self.setb(X)",
            "self.b = self.b + X",
        ],
        ["self.b", "self.getb()", "self.b[:]", "getattr(self, 'b')", "self.b.clone()"],
    ),
    "a module's buffer": (
        ["self.sub.b = X", "self.sub.b.copy_(X)", "self.sub.b += X", "self.sub.setb(X)"],
        ["self.sub.b"],
    ),
    "a module by a name": (
        [
            "sub = self.sub\n        sub.kept = X",
            "sub = self.sub\n        sub.put(X)",
            "sub = self.sub\n        sub(X)",
        ],
        ["self.sub.kept", "self.sub.get()"],
    ),
    "a buffer of a module by a name": (
        [
            "sub = self.sub\n        sub.b = X",
            "sub = self.sub\n        sub.b += X",
            "sub = self.sub\n        sub.b.copy_(X)",
            "sub = self.sub\n        sub.setb(X)",
            "for sub in self.children():\n            if hasattr(sub, 'b'):\n                sub.b += X",
        ],
        ["self.sub.b"],
    ),
    "a buffer of one of several modules": (
        [
            "for sub in self.subs:\n            sub.b += X",
            "for sub in self.subs:\n            sub.b = X",
            "for sub in self.subs:\n            sub.setb(X)",
            "sub, _ = self.subs\n        sub.b.copy_(X)",
            "self.subs[0].b += X",
            "i = 0\n        self.subs[i].b += X",
        ],
        ["self.subs[0].b", "[m.b for m in self.subs][0]", "next(iter(self.subs)).b"],
    ),
}
VALUES = ["x", "x[:]", "x * 1"]
USES = [
    "return x + y",
    "y += 1\n        return x",
    "x += 1\n        return y",
    "y.mul_(2)\n        return x + y.sum()",
    "y += 1\n        return TAKEN * 1",
    "x += 1\n        return TAKEN * 1",
    "z = x * 3\n        AGAIN\n        return y + x",
]
BEGINS = ["x = x - 1", "pass"]
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))


def programs(slot: str) -> list[str]:
    stores, loads = SLOTS[slot]
    found = []
    for store, load, use, value in itertools.product(stores, loads, USES, VALUES):
        after = use.replace("TAKEN", load).replace("AGAIN", store.replace("X", "z"))
        found.append(f"{store.replace('X', value)}\n        y = {load}\n        {after}")
    return found


def _compare(lines: list[str], begin: str, derived: bool = False) -> int:
    """How many of some forward passes are converted; each of them has torch's results.

    Args:
      derived: what keeps the tensors is done by a class that theirs derives from.
    """
    text, places = HEAD + (BASE if derived else ""), []
    first = text.count("\n")
    for number, one in enumerate(lines):
        text += (DERIVED if derived else BODY).format(number=number, begin=begin, lines=one)
        places.append(text.count("\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = convert_source(text)
    told = [f.line for f in result.findings if f.blocks]
    if any(line <= first for line in told):
        return 0
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    exec(text, theirs)
    exec(result.code, ours)
    found = 0
    for number, last in enumerate(places):
        if not any(first < line <= last for line in told):
            found += agree(theirs[f"M{number}"], ours[f"M{number}"], lines[number])
        first = last
    return found


def agree(model: type, port: type, program: str) -> bool:
    """Check that both give the same in two calls; False where torch does not run it either."""
    try:
        module = model()
        want = [module(one).detach().numpy().copy() for one in (X.clone(), X * 2)]
    except REFUSED:
        return False
    takes = "rngs" in inspect.signature(port.__init__).parameters
    made = port(rngs=nnx.Rngs(0)) if takes else port()
    for one, expected in zip((X, X * 2), want, strict=True):
        got = made(jnp.asarray(one.numpy()))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=program)
    return True


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("slot", SLOTS)
def test_kept_and_taken_out_today(slot: str, derived: bool) -> None:
    for begin in BEGINS:
        _compare(random.Random(SEED).sample(programs(slot), 12), begin, derived)


@pytest.mark.sweep
@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("begin", BEGINS)
@pytest.mark.parametrize("slot", SLOTS)
def test_all_that_is_kept_and_taken_out(slot: str, begin: str, derived: bool) -> None:
    every = programs(slot)
    for first in range(0, len(every), 50):
        _compare(every[first : first + 50], begin, derived)


@pytest.mark.parametrize("slot", ["an attribute", "a list", "a buffer"])
def test_what_is_kept_is_converted(slot: str) -> None:
    stores, loads = SLOTS[slot]
    lines = [
        f"{s.replace('X', 'x * 1')}\n        y = {loads[0]}\n        return y + x"
        for s in stores[:3]
    ]
    assert _compare(lines, "pass") == 3


CACHED = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.cache = {}

    def forward(self, x):
        cache, seen = CACHE
        if "a" not in cache:
            cache["a"] = self.fc(x)
        return x + cache["a"]
"""


@pytest.mark.parametrize(
    "line", ["cache = self.cache", "every = self.cache\n        cache = every"]
)
def test_a_dict_that_is_kept_has_another_name(line: str) -> None:
    """The next call, of another trace, finds a tracer there."""
    assert rules_of(CACHED.replace("cache, seen = CACHE", line)) == ["TRC003"]


def test_a_dict_of_the_call_itself() -> None:
    assert convert(CACHED.replace("cache, seen = CACHE", "cache = {}")).complete
