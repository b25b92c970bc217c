"""Writes to a tensor that is got at in some way, while another name stands for it: refused, or torch's result.

Ways to get at it, kinds of names for what is got, and what is done then; and functions that write to what they are called
with, by stars, by keywords of others, and from ``*args``. A few are drawn by the day, or by PROGRAMS_SEED; all are tried
in the sweep.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import os
import random
import warnings
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from migrator.convert import convert_source
from tests.convert.tools import X

HEAD = """import collections
import functools
import itertools
import operator
import types
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


def same(x):
    return x


def second(k, x):
    return x


def make(x):
    def go():
        return x

    return go


def lazy(x):
    return lambda: x


def bound(x):
    return functools.partial(same, x)


def gen(x):
    yield x


class Keep:
    def __init__(self, x):
        self.x = x

    def __call__(self):
        return self.x

    def get(self, k=0):
        return self.x

    @property
    def p(self):
        return self.x


class Pair(NamedTuple):
    x: torch.Tensor
    k: int


@dataclass
class Data:
    x: torch.Tensor
    k: int = 1


"""
WAYS = """
x
functools.partial(same, x)()
functools.partial(second, 3)(x)
functools.partial(second, x=x)(3)
make(x)()
lazy(x)()
bound(x)()
next(gen(x))
list(gen(x))[0]
[*gen(x)][0]
Keep(x)()
Keep(x).get()
Keep(x).p
Keep(x).x
Keep([x].pop()).x
getattr(Keep(x), "x")
vars(Keep(x))["x"]
Pair(x, 1).x
Pair(x, 1)[0]
Pair(x, 1)._replace(k=2).x
Data(x).x
types.SimpleNamespace(x=x).x
{"a": x}.get("a")
{"a": x}.pop("a")
{**{"a": x}}["a"]
({"a": x} | {"b": 1})["a"]
dict(zip("a", [x]))["a"]
list({"a": x}.values())[0]
collections.OrderedDict(a=x)["a"]
collections.deque([x])[0]
[x].pop()
([x] + [1])[0]
(lambda: x)()
(lambda t=x: t)()
next(filter(lambda t: True, [x]))
list(map(same, [x]))[0]
functools.reduce(lambda a, b: b, [x, x])
next(reversed([x]))
list(enumerate([x]))[0][1]
operator.itemgetter(0)([x])
next(itertools.chain([x], [x]))
torch.Tensor(x)
torch.as_tensor(x)
x.contiguous()
x.to(x.dtype)
x.detach()
x.reshape(x.shape)
x.squeeze()
x.expand(3, 4)
x.unbind()[0]
F.dropout(x, 0.5, False)
x.clone()
x * 1
torch.cat([x])
""".strip().splitlines()
NAMES = {
    "a name": "y = WAY",
    "an object": "y = Keep(WAY).x",
    "an object with a name": "o = Keep(WAY)\n        y = o.x",
    "a method": "o = Keep(WAY)\n        y = o.get()",
    "data": "o = Data(WAY)\n        y = o.x",
    "a pair": "o = Pair(WAY, 1)\n        y = o.x",
    "an object's second name": "o = Keep(WAY)\n        p = o\n        y = p.get()",
    "a property": "o = Keep(WAY)\n        y = o.p",
    "an object in a list": "os = [Keep(WAY)]\n        y = os[0].get()",
    "an object in a dict": "os = {'a': Data(WAY)}\n        y = os['a'].x",
    "objects in a loop": "y = None\n        for o in [Keep(WAY)]:\n            y = o.x",
    "an object that is called": "o = Keep(WAY)\n        y = o()",
    "an attribute set later": "o = Keep(1)\n        o.x = WAY\n        y = o.get()",
    "an object in an object": "o = Keep(Data(WAY))\n        y = o.x.x",
    "a list": "ys = [WAY]\n        y = ys[0]",
    "a loop": "y = None\n        for y in [WAY]:\n            pass",
    "two at once": "y, _ = WAY, 1",
    "a function": "y = same(WAY)",
}
USES = [
    "y += 1\n        return x",
    "x += 1\n        return y",
    "y.mul_(2)\n        return x + y.sum()",
]
ORIGINS = {"made": "x = x - 1", "given": "pass", "state": "x = self.b", "a part": "x = x[:3]"}
READING = [*itertools.product(WAYS, NAMES.values(), USES, ORIGINS.values())]

WRITERS = {
    "augmented": "x += 1\n    return x",
    "method": "return x.mul_(2)",
    "item": "x[:, 0] = 0\n    return x * 2",
    "a view": "y = x.view(-1)\n    y += 1\n    return y.sum()",
    "none": "return x * 2",
    "itself": "return x",
}
FUNCTIONS = """def w(x):
    BODY


def w2(a, x):
    BODY


def positional(*args):
    x = args[0]
    BODY


def unpacked(*args):
    x, = args
    BODY


def keywords(**more):
    x = more["x"]
    BODY


def hands(*args):
    return w(*args)


def hands_keywords(**more):
    return w(**more)


def calls(f, *args, **more):
    return f(*args, **more)


def wrapped(f):
    @functools.wraps(f)
    def run(*args, **more):
        return f(*args, **more)

    return run


class Plain:
    def w(self, x):
        return w(x)


"""
CALLS = """
w(x)
w(*[x])
w(*(x,))
w(*xs)
w(*xs[:1])
w(**{"x": x})
w(**held)
w2(*[x * 1, x])
w2(x * 1, *xs)
positional(x)
positional(*xs)
unpacked(x)
keywords(x=x)
keywords(**held)
hands(x)
hands_keywords(x=x)
calls(w, x)
wrapped(w)(x)
(lambda *a: w(*a))(x)
Plain().w(*xs)
[w(*t) for t in [(x,)]][0]
[w(*t) for t in zip(xs)][0]
list(itertools.starmap(w, [xs]))[0]
functools.partial(w, *xs)()
""".strip().splitlines()
AFTERWARDS = ["return x + y", "y += 1\n        return x", "x += 1\n        return y"]
WRITING = [*itertools.product(WRITERS.values(), CALLS, AFTERWARDS)]
REFUSED = (AttributeError, RuntimeError, TypeError, UnboundLocalError)
"""What torch and Python say of a program that they do not run: it tells nothing of the port."""
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))


def _class(number: int, lines: str, init: str = "", begin: str = ORIGINS["made"]) -> str:
    text = f"class M{number}(nn.Module):\n"
    if "self.b" in begin:
        init = 'self.register_buffer("b", torch.arange(12.0).reshape(3, 4))'
    if init:
        text += f"    def __init__(self):\n        super().__init__()\n        {init}\n\n"
    return f"{text}    def forward(self, x):\n        {begin}\n        {lines}\n\n\n"


def compare(
    head: str, bodies: list[str], inits: Sequence[str] = (), begin: str = ORIGINS["made"]
) -> int:
    """How many of some forward passes are converted; each of them has torch's result."""
    text, places = head, []
    for number, lines in enumerate(bodies):
        text += _class(number, lines, inits[number] if inits else "", begin)
        places.append(text.count("\n"))
    result = convert_source(text)
    told = [f.line for f in result.findings if f.blocks]
    if any(line <= head.count("\n") for line in told):
        return 0
    theirs: dict[str, type] = {}
    ours: dict[str, type] = {}
    exec(text, theirs)
    exec(result.code, ours)
    found, begins = 0, head.count("\n")
    for number, ends in enumerate(places):
        if not any(begins < line <= ends for line in told):
            found += _agree(theirs[f"M{number}"], ours[f"M{number}"], bodies[number])
        begins = ends
    return found


def _agree(model: type, port: type, body: str) -> bool:
    """Check that both give the same; False where torch does not run the forward pass either."""
    try:
        want = model()(X.clone()).detach().numpy()
    except REFUSED:
        return False
    takes = "rngs" in inspect.signature(port.__init__).parameters
    made = port(rngs=nnx.Rngs(0)) if takes else port()
    np.testing.assert_allclose(made(jnp.asarray(X.numpy())), want, rtol=1e-5, err_msg=body)
    return True


def _reads(case: tuple[str, str, str, str]) -> str:
    way, name, use, _ = case
    return f"{name.replace('WAY', way)}\n        {use}"


@pytest.fixture(autouse=True)
def _quiet() -> None:
    warnings.simplefilter("ignore")


@pytest.mark.parametrize("origin", ORIGINS)
def test_names_of_a_tensor_of_the_day(origin: str) -> None:
    cases = [one for one in READING if one[3] == ORIGINS[origin]]
    of_today = random.Random(SEED).sample(cases, 30)
    compare(HEAD, [_reads(one) for one in of_today], begin=ORIGINS[origin])


@pytest.mark.sweep
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("name", NAMES)
def test_all_names_of_a_tensor(name: str, origin: str) -> None:
    for use in USES:
        cases = [one for one in READING if one[1:] == (NAMES[name], use, ORIGINS[origin])]
        found = compare(HEAD, [_reads(one) for one in cases], begin=ORIGINS[origin])
        assert found >= 2 * (origin != "state"), "x.clone(), x * 1"


@pytest.mark.parametrize("number", range(12))
def test_a_call_with_stars_of_the_day(number: int) -> None:
    writer, call, after = random.Random(SEED).sample(WRITING, 12)[number]
    _call(writer, call, after)


@pytest.mark.sweep
@pytest.mark.parametrize("call", CALLS)
def test_all_calls_with_stars(call: str) -> None:
    for writer, one, after in WRITING:
        if one == call:
            _call(writer, call, after)


def _call(writer: str, call: str, after: str) -> None:
    lines = f"xs = [x]\n        held = {{'x': x}}\n        y = {call}\n        {after}"
    found = compare(HEAD + FUNCTIONS.replace("BODY", writer), [lines])
    if writer == WRITERS["none"] and not call.startswith(
        ("functools", "keywords", "(lambda", "list(it")
    ):
        assert found, call


EITHER = """class M0(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Linear(4, 4)

    def forward(self, x):
        out = self.model(x)
        if len(out) == 2:
            y, more = out
            y[:2] = torch.sigmoid(y[:2])
            return y, more
        else:
            y = out
            y[:, :2] = torch.sigmoid(y[:, :2])
            return y
"""


def test_what_the_other_branch_reads_is_not_read_later() -> None:
    assert convert_source(HEAD + EITHER).complete
    loop = EITHER.replace("        return y\n", "        x = y\n").replace(
        "        if len", "        for i in range(2):\n            out = out\n        if len"
    )
    assert convert_source(HEAD + loop).complete


def test_what_the_other_branch_reads_in_the_next_round() -> None:
    lines = "y = x * 1\n        z = y\n        for i in range(2):\n            if i == 0:\n                y += 1\n"
    lines += "            else:\n                x = x + z\n        return x"
    result = convert_source(HEAD + _class(0, lines))
    assert [f.rule for f in result.findings if f.blocks] == ["MUT001"]


def test_the_sizes_of_a_rearrangement_are_no_tensors() -> None:
    source = (
        "from einops import rearrange\n"
        + HEAD
        + _class(
            0,
            "n = 2\n        h = rearrange(x * 1, 'b (n q) -> b n q', q=n)\n        h[:, 1:] = 0\n        return rearrange(h, 'b n q -> b (n q)', q=n)",
        )
    )
    assert convert_source(
        source.replace("def forward(self, x):", "def forward(self, x, n):").replace(
            "n = 2\n        ", ""
        )
    ).complete


LEAVES = """class M0(nn.Module):
    def __init__(self, n, g: torch.Tensor):
        super().__init__()
        if n == 0:
            self.m = g.to(g.device)
            END
        self.m = torch.empty((n, 3), device=g.device)
        for i in range(n):
            self.m[i] = g[i, 0]

    def forward(self, x):
        return x @ self.m
"""


@pytest.mark.parametrize(("end", "complete"), [("return", True), ("pass", False)])
def test_what_a_branch_that_leaves_has_bound(end: str, complete: bool) -> None:
    source = LEAVES.replace("END", end)
    if not complete:
        source = source.replace("self.m = torch.empty((n, 3), device=g.device)", "n = len(g)")
    assert convert_source(HEAD + source).complete is complete


NAMED = """def write(x):
    x -= 1
    return x * 2


twice = write


class M0(nn.Module):
    def forward(self, x: torch.Tensor):
        x = x * 3
        y = twice(x)
        return BACK
"""


@pytest.mark.parametrize(("back", "complete"), [("y", True), ("x + y", False)])
def test_a_function_with_another_name_is_called(back: str, complete: bool) -> None:
    assert convert_source(HEAD + NAMED.replace("BACK", back)).complete is complete


OF_CLASSES = """class Base(nn.Module):
    def forward(self, x):
        BODY


class M0(Base):
    def forward(self, x):
        x = torch.tanh(x)
        y = Base.forward(self, x)
        USE


"""


@pytest.mark.parametrize(
    ("body", "use"),
    [
        ("return x", "y += 1\n        return x"),
        ("x.mul_(2)\n        return x * 3", "return x + y"),
        ("x += 1\n        return x * 3", "return x + y"),
    ],
)
def test_a_method_that_is_called_of_its_class(body: str, use: str) -> None:
    source = OF_CLASSES.replace("BODY", body).replace("USE", use)
    assert not convert_source(HEAD + source).complete
    apart = OF_CLASSES.replace("BODY", "return x * 2").replace(
        "USE", "y += 1\n        return x + y"
    )
    assert convert_source(HEAD + apart).complete
