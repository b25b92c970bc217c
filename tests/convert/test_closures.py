"""Functions within a forward pass that read, write or give what is around them: refused, or torch's result.

What the function does, how it is called, and what is read then. A few are drawn by the day, or by PROGRAMS_SEED; all
are tried in the sweep.
"""

from __future__ import annotations

import datetime
import itertools
import os
import random
import warnings

import pytest

from tests.convert.test_ways_to_a_tensor import HEAD, ORIGINS, compare
from tests.convert.tools import check, rules_of

FUNCTIONS = """def run(f, *a):
    return f(*a)


def deco(f):
    def inner(*a):
        return f(*a)

    return inner


class Hold:
    def __init__(self, f):
        self.f = f


"""
DEFINED = {
    "writes": ("def go():\n            x.add_(1)\n            return x", ""),
    "writes a view": (
        "def go():\n            v = x[0]\n            v += 1\n            return v",
        "",
    ),
    "writes by a name": (
        "def go():\n            v = x\n            v += 1\n            return v",
        "",
    ),
    "writes nonlocal": (
        "def go():\n            nonlocal x\n            x += 1\n            return x * 1",
        "",
    ),
    "binds nonlocal": (
        "def go():\n            nonlocal x\n            x = x + 1\n            return x",
        "",
    ),
    "writes what it gets": ("def go(t):\n            t.mul_(2)\n            return t", "x"),
    "writes a part": ("def go(t):\n            t[:, 0] = 7\n            return t.sum()", "x"),
    "writes a default": ("def go(t=x):\n            t += 1\n            return t * 1", ""),
    "gives": ("def go():\n            return x", ""),
    "gives a view": ("def go():\n            return x[:2]", ""),
    "gives what it gets": ("def go(t):\n            return t", "x"),
    "a lambda writes": ("go = lambda: x.add_(1)", ""),
    "a lambda gives": ("go = lambda: x", ""),
    "a lambda's default": ("go = lambda t=x: t", ""),
    "gives a list": ("def go():\n            return [x][0]", ""),
    "writes into a list": (
        "xs = [x]\n        def go():\n            xs[0] += 1\n            return xs[0] * 1",
        "",
    ),
    "writes an object's": (
        "ob = Keep(x)\n        def go():\n            ob.x.add_(1)\n            return ob.x * 1",
        "",
    ),
    "in two levels": (
        "def go():\n            def deep():\n                return x\n            return deep()",
        "",
    ),
    "makes": ("def go():\n            return x * 2", ""),
}
CALLED = [
    "r = go(ARG)",
    "r = run(go, ARG)",
    "r = deco(go)(ARG)",
    "f = go\n        r = f(ARG)",
    "fs = [go]\n        r = fs[0](ARG)",
    "fs = {'a': go}\n        r = fs['a'](ARG)",
    "r = functools.partial(go, ARG)()",
    "r = [go(ARG) for _ in range(2)][1]",
    "r = None\n        for _ in range(2):\n            r = go(ARG)",
    "h = Hold(go)\n        r = h.f(ARG)",
    "r = (go if x.ndim > 1 else deco(go))(ARG)",
    "r = (go if len(x) else deco(go))(ARG)",
    "r = None\n        if x.ndim > 1:\n            r = go(ARG)",
    "r = (lambda: go(ARG))()",
    "self.g = go\n        r = self.g(ARG)",
    "def again(*a):\n            return go(*a)\n        r = again(ARG)",
    "r = list(map(lambda i: go(ARG), [0]))[0]",
]
READ = [
    ("pass", "return x"),
    ("pass", "return r"),
    ("pass", "r += 1\n        return x"),
    ("pass", "x += 1\n        return r"),
    ("y = x", "return y"),
    ("y = x", "return x + y"),
    ("y = x", "y += 1\n        return r"),
    ("y = x[0]", "return y"),
    ("ys = [x]", "return ys[0]"),
]
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))


@pytest.fixture(autouse=True)
def _quiet() -> None:
    warnings.simplefilter("ignore")


def _program(defined: tuple[str, str], called: str, read: tuple[str, str]) -> str:
    what, given = defined
    call = called.replace(", ARG", f", {given}" if given else "").replace("ARG", given)
    return "\n        ".join((read[0], what, call, read[1]))


@pytest.mark.parametrize("origin", ORIGINS)
def test_functions_within_functions_today(origin: str) -> None:
    every = [*itertools.product(DEFINED.values(), CALLED, READ)]
    drawn = [_program(*one) for one in random.Random(SEED).sample(every, 40)]
    compare(HEAD + FUNCTIONS, drawn, begin=ORIGINS[origin])


@pytest.mark.sweep
@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("defined", DEFINED)
def test_all_functions_within_functions(defined: str, origin: str) -> None:
    every = [_program(DEFINED[defined], *one) for one in itertools.product(CALLED, READ)]
    for first in range(0, len(every), 60):
        compare(HEAD + FUNCTIONS, every[first : first + 60], begin=ORIGINS[origin])


def test_what_a_function_makes_is_its_own() -> None:
    programs = [
        _program(DEFINED["makes"], called, ("y = x", "return x + y + r")) for called in CALLED[:4]
    ]
    assert compare(HEAD + FUNCTIONS, programs) == 4


DEFAULT = """def f(x, total=DEFAULT):
    total += x
    return total * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = self.fc(x)
        return f(CALL)
"""


@pytest.mark.parametrize("call", ["x", "x, x * 2"])
def test_a_default_that_is_written(call: str) -> None:
    source = DEFAULT.replace("CALL", call).replace("DEFAULT", "torch.zeros(3, 4)")
    assert rules_of(source) == ["MUT003"]


@pytest.mark.parametrize("default", ["0", "None", "1.5"])
def test_a_default_that_is_no_tensor(default: str) -> None:
    check(DEFAULT.replace("CALL", "x, x * 2").replace("DEFAULT", default))


@pytest.mark.parametrize("made", ["f = lambda x: self.v(x)", "def f(x): return self.v(x)"])
def test_a_lambda_of_a_class_that_another_one_calls(made: str) -> None:
    """Who looks for the loop that gives its argument a value comes to the head of the file, and stops there."""
    check(f"""
class M(nn.Module):
    v = staticmethod(lambda t: t.clamp(min=0.2))

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        {made}
        x = self.fc(x)
        return f(x) + f(x * 2)
""")
