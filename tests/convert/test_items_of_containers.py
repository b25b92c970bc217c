"""Tensors in lists and dicts that are changed in place: whoever else holds one is told, or has torch's value.

What makes a container, what else holds something of it, and what changes an item: a few programs of that product are
drawn by the day, or by PROGRAMS_SEED; many more in the sweep.
"""

from __future__ import annotations

import datetime
import itertools
import os
import random
import re
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, REFUSED_BY_TORCH, ported, rules_of

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
FUNCTIONS = {
    "make": "def make(x):\n    return [x * 2, x * 3]\n\n\n",
    "both": "def both(x):\n    y = x * 2\n    return [y, y]\n\n\n",
    "f_": "def f_(t):\n    t.mul_(2)\n\n\n",
    "g_": "def g_(t):\n    return t.mul_(2)\n\n\n",
}
METHODS = {
    "make": "    def make(self, x):\n        return [x * 2, x * 3]\n\n",
    "table": '    def table(self, x):\n        return {"a": x * 2, "b": x * 3}\n\n',
    "keep": "    def keep(self, t):\n        return t\n\n",
}
MODULE = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.flag = True
        self.act = nn.ReLU(inplace=True)

{methods}    def forward(self, x):
        y = x * 5
        h = z = 0
{lines}
        return d, h, z() if callable(z) else z, y, x
"""
CONTAINERS = (
    ('d = {"a": x * 2, "b": x * 3}', 'd["a"]'),
    ("d = [x * 2, x * 3]", "d[0]"),
    ("d = [x * 2, x * 3]", "d[-1]"),
    ("i = 1\nd = [x * 2, x * 3]", "d[i]"),
    ("d = [x * i for i in (2, 3)]", "d[0]"),
    ("d = []\nfor i in (2, 3):\n    d.append(x * i)", "d[0]"),
    ('d = {k: x * i for k, i in (("a", 2), ("b", 3))}', 'd["a"]'),
    ("d = list((x * 2, x * 3))", "d[1]"),
    ("d = dict(a=x * 2, b=x * 3)", 'd["b"]'),
    ("d = [x * 2] * 2", "d[0]"),
    ('d = {"a": y, "b": y}', 'd["a"]'),
    ("d = make(x)", "d[0]"),
    ("d = both(x)", "d[0]"),
    ("d = [x, x * 3]", "d[0]"),
    ("d = [y, y[0:1]]", "d[0]"),
    ("d = [y, y[0:1]]", "d[1]"),
    ("d = [[x * 2], [x * 3]]", "d[0][0]"),
    ('d = {"p": [x * 2]}', 'd["p"][0]'),
    ("d = list(y.chunk(2, 1))", "d[0]"),
    ("d = y.chunk(2, 1)", "d[0]"),
    ("d = [*y.unbind(1)]", "d[0]"),
    ("d = self.make(x)", "d[0]"),
    ('d = {}\nd["a"] = x * 2\nd["b"] = d["a"]', 'd["a"]'),
    ("d = {}\nfor i in range(2):\n    d[i] = x * i", "d[0]"),
    ("d = (x * 2, x * 3)", "d[0]"),
    ("d = [[x * 2] * 2, [x * 3]]", "d[0][1]"),
    ("d = [0] * 2\nd[0] = x * 2", "d[0]"),
    ("d = self.table(x)", 'd["a"]'),
    ("d = [t.clone() for t in (y, y)]", "d[0]"),
    ("d = [t for t in (y, y)]", "d[0]"),
)
HOLDERS = (
    "",
    *("z = E", "z = d", "z = d[:]", "z = d.copy()", "z = [E]", "z = E.view(-1)", "z = list(d)"),
    *("z = tuple(d)", "z = {**d}", "z = dict(d)", "z = list(d.values())", "z = self.keep(d)"),
    *("z = y", "z = d[1:]", "z = d[::-1]", "z = d + []", "z = self.keep(E)", "z, *_ = d"),
    *('z = {"q": d}', "z = [d]", "z = E[0]", "z = E.detach()", "z = x if False else E"),
    *("z = sorted(d)", 'z = d.get("a")', "z = next(iter(d))", "z = [t for t in d]", "z = E.T"),
    *("z = torch.stack(list(d))", "z = lambda: E", "import copy\nz = copy.copy(d)"),
)
CHANGES = (
    *("E.mul_(2)", "E += 1", "E.sigmoid_()", "h = E.sigmoid_()", "E.copy_(E + 1)"),
    *("torch.relu_(E)", "F.relu(E, inplace=True)", "h = F.relu(E, inplace=True)"),
    *("torch.mul(E, 2, out=E)", "E[0] = 1", "E.data.mul_(2)", "h = E.mul_(2).add_(1)"),
    *("E = E.sigmoid_()", "E[:, 0].zero_()", "E.add_(E)", "f_(E)", "h = g_(E)", "E = g_(E)"),
    *("for t in d:\n    t.mul_(2)", "h = E.mul_(2) + E", "h = torch.clamp(E.sigmoid_(), 0.6)"),
    *("h = E.mul_(2)\nh += 1", "h = self.keep(E.mul_(2))", "if self.flag:\n    E.mul_(2)"),
    *("if x.size(0) > 1:\n    h = E.mul_(2)", "for j in range(2):\n    h = E.mul_(2)"),
    *("h = E.fill_(1) if self.flag else E", "self.act(E)", "h = self.act(E)", "E.zero_()"),
    *("h = E.t_()", "h = E.unsqueeze_(0)", "h, k = E.mul_(2), 1"),
)
EVERY = list(itertools.product(CONTAINERS, HOLDERS, CHANGES, (False, True)))


def program(container: tuple[str, str], holder: str, change: str, before: bool) -> str:
    """A module that makes a container, has something hold of it, and changes an item, in one order or the other."""
    lines = [holder, change] if before else [change, holder]
    body = "\n".join([container[0], *(re.sub(r"\bE\b", container[1], one) for one in lines if one)])
    made = "".join(t for n, t in FUNCTIONS.items() if re.search(rf"(?<![\w.]){n}\(", body))
    methods = "".join(text for name, text in METHODS.items() if f"self.{name}(" in body)
    return HEADER + made + MODULE.format(methods=methods, lines=textwrap.indent(body, " " * 8))


def leaves(value: Any) -> list[np.ndarray]:
    """The numbers of all that a forward pass gives."""
    if isinstance(value, dict):
        return [one for part in value.values() for one in leaves(part)]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in leaves(part)]
    if isinstance(value, torch.Tensor):
        return [value.detach().numpy().copy()]
    return [np.asarray(value)] if isinstance(value, (jax.Array, int, float)) else []


def compare(source: str) -> str:
    """ "equal", "refused", or "" for what torch itself refuses; anything else is an error."""
    x, theirs = np.linspace(-1, 1.5, 12, dtype=np.float32).reshape(3, 4), {}
    exec(source, theirs)
    module = theirs["M"]()
    try:
        expected = leaves(module(torch.tensor(x)))
    except REFUSED_BY_TORCH:
        return ""
    made = ported(source)
    if made is None:
        return "refused"
    ours, code = made
    got = leaves(ours["M"](rngs=nnx.Rngs(0))(jnp.asarray(x)))
    assert len(got) == len(expected), code
    for mine, one in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine, one, rtol=1e-5, atol=1e-6, err_msg=code)
    return "equal"


@pytest.mark.parametrize("i", range(6))
def test_items_that_are_changed_in_place(i: int) -> None:
    found = [compare(program(*one)) for one in random.Random(f"{SEED}.{i}").sample(EVERY, 25)]
    assert found.count("") < 15  # of a program that torch does not run nothing is learned


@pytest.mark.sweep
@pytest.mark.parametrize("i", range(40))
def test_many_items_that_are_changed_in_place(i: int) -> None:
    for one in random.Random(f"items.{i}").sample(EVERY, 250):
        compare(program(*one))


@pytest.mark.parametrize(
    ("holder", "change"),
    [
        ("", "E.mul_(2)"),
        ("z = d", "E.sigmoid_()"),
        ("", "h = E.sigmoid_()"),
        ("", "E = E.sigmoid_()"),
        ("", "h = torch.clamp(E.sigmoid_(), 0.6)"),
    ],
)
@pytest.mark.parametrize(
    "container",
    [
        ('d = {"a": x * 2, "b": x * 3}', 'd["a"]'),
        ("d = [x * 2, x * 3]", "d[-1]"),
        ("d = self.make(x)", "d[0]"),
    ],
)
def test_an_item_that_nothing_else_holds(
    container: tuple[str, str], holder: str, change: str
) -> None:
    assert compare(program(container, holder, change, True)) == "equal"


@pytest.mark.parametrize(
    "holder", ["z = E", "z = d[:]", "z = d[::-1]", "z = d.copy()", "z = d + []"]
)
@pytest.mark.parametrize("change", ["E += 1", "E.mul_(2)", "h = E.sigmoid_()"])
@pytest.mark.parametrize("maker", ["d = [x * 2, x * 3]", "d = self.make(x)", "d = make(x)"])
def test_another_list_holds_the_same_tensors(maker: str, holder: str, change: str) -> None:
    assert compare(program((maker, "d[0]"), holder, change, True)) == "refused"


def test_a_list_or_dict_that_is_handed() -> None:
    source = """
    from typing import Dict, List

    class M(nn.Module):
        def forward(self, d: KIND):
            z = HOLDER
            d[KEY] += 1
            return z, d
    """
    for kind, key in (("List[torch.Tensor]", "0"), ("Dict[str, torch.Tensor]", '"a"')):
        text = source.replace("KIND", kind).replace("KEY", key)
        assert rules_of(text.replace("HOLDER", f"d[{key}]")) == ["MUT001"]
        assert rules_of(text.replace("HOLDER", "d.copy()")) == ["MUT001"]
        assert rules_of(text.replace("HOLDER", "d")) == []
