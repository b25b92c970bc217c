"""What is assigned to, and in which form: several targets, a chain, a loop, a context; refused, or torch's result.

A parameter, a buffer, the weights of a layer, their ``data`` and parts, in a constructor and in a forward pass. A few are
drawn by the day, or by PROGRAMS_SEED; all are tried in the sweep.
"""

from __future__ import annotations

import datetime
import itertools
import os
import random
import textwrap
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, rules_of

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
HEAD = """
import contextlib


@contextlib.contextmanager
def given(v):
    yield v


def pair(a, b):
    return a, b


class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.ones(3) * 2)
        self.scale = nn.Parameter(torch.ones(3) * 0.5)
        self.k = 1.5

    def forward(self, x):
        return x * self.scale + self.buf * self.k


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))
        self.w = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)
        self.fd = nn.Linear(3, 3)
        self.ln = nn.LayerNorm(3)
        self.sub = Sub()
        self.plain = 1.0
        INIT

    def forward(self, x):
        y = x * 1
        z = x * 2
        FORWARD
        out = (y - self.mean) / (self.var.abs() + 1) * self.w + self.ln(self.fd(self.fc(x)))
        out = out + self.sub(z) * self.plain
        return out, self.mean * 1, self.fc.weight * 1, self.fc.bias * 1
"""
ROWS = [
    *(
        "self.mean self.mean.data self.var self.w.data self.fc.bias.data self.ln.weight.data".split()
    ),
    *(
        "self.sub.buf self.sub.buf.data self.sub.scale.data y y[0] y.data y.data[0] self.mean[:]".split()
    ),
    *("self.fc.weight.data[0] self.fc.weight.data[:,0] self.plain self.sub.k".split()),
]
NEW = ["self.w", "self.fc.bias", "self.sub.scale"]
TRAINED = [f"{name}.requires_grad" for name in (*NEW, "self.fc.weight")]
SQUARES = ["self.fc.weight.data", "self.fd.weight.data", "self.fc.weight"]
FORMS = {
    "single": "A = V",
    "tuple": "A, B = V, W",
    "list": "[A, B] = V, W",
    "nested": "(A, (B, q)) = V, (W, 3)",
    "call": "A, B = pair(V, W)",
    "chain": "A = B = V",
    "name": "n = A = V",
    "name after": "A = n = V",
    "for": "for A in (V, W):\n    pass",
    "for pair": "for i, A in enumerate([V]):\n    pass",
    "with": "with given(V) as A:\n    pass",
    "star": "A, *rest = [V, W]",
    "swap": "A, B = B, A",
    "named": "p = (V, W)\nA, B = p",
    "added": "A += W",
}
REFUSED = (RuntimeError, TypeError, ValueError, AttributeError, IndexError)
"""What torch and Python raise where they refuse an assignment."""


def _value(target: str, number: float, forward: bool) -> str:
    if target in TRAINED:
        return "False"
    if target in ("self.plain", "self.sub.k"):
        return str(2.0 + number)
    if target in SQUARES:
        value = f"torch.eye(3) * {2 + number} + torch.arange(3.0)"
    else:
        value = f"{'x.mean(0)' if forward else 'torch.arange(3.0)'} * {0.5 + number}"
    return f"nn.Parameter({value})" if target in (*NEW, "self.fc.weight") else value


def _line(form: str, first: str, second: str, forward: bool) -> str:
    words = {
        "A": first,
        "B": second,
        "V": _value(first, 0.0, forward),
        "W": _value(second, 1.0, forward),
    }
    return "".join(words.get(one, one) for one in _split(FORMS[form]))


def _split(text: str) -> list[str]:
    parts, word = [], ""
    for letter in text:
        if letter.isalnum() or letter == "_":
            word += letter
        else:
            parts += [word, letter]
            word = ""
    return [*parts, word]


PAIRS = [
    pair
    for group in ([*ROWS, *NEW, *TRAINED], [*SQUARES, *TRAINED[:2]])
    for pair in itertools.product(group, group)
]
CASES = [
    (form, first, second, forward)
    for form in FORMS
    for first, second in PAIRS
    for forward in (False, True)
    if forward or "y" not in (first[0], second[0])
]


def _compare(case: tuple[str, str, str, bool]) -> bool:
    """Check a case; False where torch or the conversion refuses it."""
    form, first, second, forward = case
    line = textwrap.indent(_line(form, first, second, forward), " " * 8).strip()
    both = {"INIT": "pass", "FORWARD": "pass", ("FORWARD" if forward else "INIT"): line}
    source = HEADER + HEAD.replace("INIT", both["INIT"]).replace("FORWARD", both["FORWARD"])
    theirs: dict = {}
    exec(source, theirs)
    torch.manual_seed(0)
    inputs = [torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0, 2, 6).reshape(2, 3)]
    try:
        model = theirs["M"]()
        begin = {name: value.clone() for name, value in model.state_dict().items()}
        want = [[one.detach().clone() for one in model(x.clone())] for x in inputs]
    except REFUSED:
        return False
    result = migrator.convert_source(source)
    if not result.complete:
        return False
    ours: dict = {}
    exec(result.code, ours)
    port = ours["M"](rngs=nnx.Rngs(0))
    for name, value in migrator.to_state_dict(port).items():
        if "fc" not in name and "fd" not in name:
            np.testing.assert_allclose(value, begin[name], atol=1e-6, err_msg=f"{name}: {line}")
    migrator.load_state_dict(port, begin)
    for x, several in zip(inputs, want, strict=True):
        for got, one in zip(port(jnp.asarray(x.numpy())), several, strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4, err_msg=line)
    state = migrator.to_state_dict(port)
    for name, value in model.state_dict().items():
        np.testing.assert_allclose(state[name], value, rtol=1e-4, atol=1e-4, err_msg=line)
    return True


@pytest.fixture(autouse=True)
def _quiet() -> None:
    warnings.simplefilter("ignore")


@pytest.mark.parametrize("number", range(24))
def test_forms_of_the_day(number: int) -> None:
    _compare(random.Random(SEED).sample(CASES, 24)[number])


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("forward", [False, True])
def test_all_forms(form: str, forward: bool) -> None:
    agree = sum([_compare(one) for one in CASES if one[0] == form and one[3] == forward])
    assert agree or form in ("for", "for pair", "with", "star")


SHARED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("last", torch.zeros(3))
        self.kept = None

    def forward(self, x):
        v = x.mean(0)
        LINES
        return x + self.mean, self.last * 1
"""


@pytest.mark.parametrize(
    ("lines", "complete"),
    [
        ("self.mean = self.last = v; self.last += 1", False),
        ("self.mean = v; self.last = v; self.last.add_(1)", False),
        ("self.mean, self.last = v, v; self.mean[0] = 1", False),
        ("self.mean.data, self.last.data = v, v; self.last += 1", False),
        ("self.mean.data = self.last.data = v; self.last.zero_()", False),
        ("self.mean = v[:]; self.last = v; self.mean += 1", False),
        ("self.mean = self.last.view(3); self.last += 1", False),
        ("self.mean = v; self.kept = v; self.mean += 1", False),
        ("q, self.mean.data = v, v; self.mean += 1; x = x + q", False),
        ("self.mean = self.last = v", True),
        ("self.mean = v; self.last = v * 1; self.last += 1", True),
        ("self.mean = v; self.last = v.clone(); self.last.add_(1)", True),
        ("self.mean = 0.9 * self.mean + v; self.last += v", True),
    ],
)
def test_one_tensor_under_two_attributes(lines: str, complete: bool) -> None:
    source = SHARED.replace("LINES", lines.replace("; ", "\n        "))
    assert (rules_of(source) == []) is complete
    if not complete:
        return
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(migrator.convert_source(HEADER + source).code, ours)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for number in (1.0, 2.0):
        x = np.linspace(-1, number, 6, dtype=np.float32).reshape(2, 3)
        for got, one in zip(port(jnp.asarray(x)), model(torch.tensor(x)), strict=True):
            np.testing.assert_allclose(got, one, rtol=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "operator.iadd(y, x)",
        "z = operator.imul(y, x)",
        "y.__iadd__(x)",
        "y.__setitem__(0, 1.0)",
        "functools.reduce(operator.iadd, [y, x])",
        "getattr(self, name).data = x.mean(0)",
        "getattr(self, name).data, q = x.mean(0), 1",
        "self.other.k = nn.Parameter(x.mean())",
        "self.other.k += x.mean(0)",
        "self.mean, *rest = [x.mean(0), 1]",
    ],
)
def test_writes_that_look_like_reads_are_a_finding(line: str) -> None:
    source = f"""
    import functools, operator


    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 1.5

        def forward(self, x):
            return x * self.k


    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.other = Other()

        def forward(self, x, name: str):
            y = x * 2
            {line}
            return y + self.mean + self.other(x)
    """
    assert rules_of(source)


def test_a_gradient_that_is_dropped() -> None:
    source = """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x):
            self.fc.weight.grad = None
            return self.fc(x)
    """
    assert rules_of(source) == []
    assert ".grad" not in migrator.convert_source(HEADER + textwrap.dedent(source)).code
    assert rules_of(source.replace("grad = None", "grad = x")) == ["API002"]
