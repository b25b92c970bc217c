"""Random programs of views, in-place writes, calls and module state, for the comparison with torch.

Each is a function or a module of three tensors whose shapes are followed while it is made, so that most of them run.
"""

from __future__ import annotations

import inspect
import math
import random
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER

Shape = tuple[int, ...]

HELPERS = """def bump(x: torch.Tensor):
    x.add_(1)
    return x


def head(x: torch.Tensor):
    return x[0]


def flat(x: torch.Tensor):
    return x.reshape(-1)


def fill(x: torch.Tensor):
    x[1:] = 3


def same(x: torch.Tensor):
    return x


def both(x: torch.Tensor, y: torch.Tensor):
    x.mul_(2)
    return x, y


def halves(x: torch.Tensor):
    return x[:1], x[1:]


def first(items, x: torch.Tensor):
    items.append(x)
    return items[0]


def rows(x: torch.Tensor):
    for i in range(x.shape[0]):
        x[i] += i


def later(x: torch.Tensor):
    def inner(y):
        return x + y

    return inner


def scaled(x: torch.Tensor, by=None):
    if by is not None:
        x = x * by
    return x


def grow(x: torch.Tensor, n: int):
    if n == 0:
        return x
    return grow(x + 1, n - 1)


def pick(x: torch.Tensor, y: torch.Tensor, left: bool = True):
    return x if left else y


class Box:
    def __init__(self, x):
        self.x = x

    def bump(self):
        self.x = self.x + 1

    def write(self):
        self.x.add_(1)
"""

MODULE = """class Sub(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4, 4))
        self.seen = None

    def store(self, x):
        self.seen = x

    def write(self, x):
        self.state.copy_(x)

    def forward(self, x):
        BODY
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("buf", torch.arange(16.0).view(4, 4) / 8)
        self.par = nn.Parameter(torch.ones(4, 4))
        self.lin = nn.Linear(4, 4)
        self.sub = Sub()
        self.act = nn.LAYER
        self.drop = nn.Dropout(0.5)
        self.seq = nn.Sequential(nn.Identity(), nn.ReLU())

    def get(self):
        return self.buf

    def put(self, x):
        self.buf = x

    @property
    def shown(self):
        return self.buf

    def keep(self, x):
        self.last = x
        return x

    def forward(self, a, b, c, flag: bool):
"""
BODIES = (
    "x = x * 2",
    "x.add_(1)",
    "self.state += 1",
    "self.seen = x",
    "self.state.add_(x.sum())",
    "x = x if self.seen is None else x",
    "x = F.relu(x, inplace=True)",
    "self.state[0] = 1\n        x = x + self.state.sum()",
)

# {v} and {o} are tensors of one shape, {t} a row of {v}, {l} a list of such tensors. In expressions the shape of the
# result stands before: "=" as {v}, "row" without its first axis, "flat" all in one axis, "T" the axes turned around.
EXPRESSIONS = """
=    {v} * 2 | {v} + 1 | {v}.clone() | {v} | {v}.detach() | {v}.contiguous() | same({v}) | torch.relu({v}) | {v}.float()
=    {v}.to({v}.dtype) | torch.zeros_like({v}) | bump({v}) | {v}.add_(1) | {v}.mul_(2) + 1 | {v}.clone().mul_(3)
=    F.relu({v}, inplace=True) | F.dropout({v}, 0.5, False) | {v} + {o} | torch.where({o} > 0, {v}, {o}) | pick({v}, {o})
=    pick({v}, {o}, False) | {v} if flag else {o} | torch.maximum({v}, {o}) | {v}.add_({o}) * {o} | {o} * {v}.add_(1)
=    both({v}, {o})[0] | later({v})({o}) | scaled({v}) | scaled({v}, 2) | grow({v}, 2) | {v}.masked_fill({v} > 1, 0)
=    {v}.clamp(min=0) | torch.add({v}, {o}) | (lambda t: t)({v}) | (lambda t: t.add_(1))({v}) | [t for t in ({v}, {o})][0]
=    {v}.masked_fill_({v} > 1, 0) | {v}.type_as({o}) | {v}.expand_as({o}) | dict(k={v})['k'] | ({v}, {o})[0] | {v}[None][0]
=    {v}.unsqueeze(0).squeeze(0)
flat {v}.reshape(-1) | {v}.view(-1) | {v}.flatten() | flat({v}) | ({v} + {o}).view(-1).add_(1)
"""
OF_ROWS = """
row  {v}[0] | head({v}) | {v}.unbind(0)[1] | {v}.select(0, 1)
"""
OF_FOUR_ROWS = """
=    torch.cat([{v}[:2], {v}[2:]])
two  {v}[:2] | {v}.chunk(2)[1] | {v}.split(2)[0] | {v}[::2] | {v}[[0, 1]] | {v}.index_select(0, torch.tensor([1, 0]))
rest {v}[1:] | halves({v})[1] | {v}.narrow(0, 1, 3)
"""
OF_SQUARES = """
T    {v}.t() | {v}.transpose(0, 1) | {v}.permute(1, 0) | {v}.T
row  {v}[:, 0] | {v}.diagonal() | {v}.sum(0)
"""
OF_MODULES = """
=    self.act({v}) | self.drop({v}) | self.seq({v}) | self.sub({v}) | self.keep({v})
"""
STATE = "self.buf | self.par | self.get() | self.shown | self.sub.state | self.buf.view(4, 4)"

# {e} and {d} are expressions of one shape, of which one is computed in a statement of its own, perhaps.
TOGETHER = """
{e} + F.threshold({d} * 2, 0.1, 0.2) | F.threshold({e} + 1, 0.1, 0.2) + {d} | {e} * F.hardshrink(({d}), 0.1) | ({e}) + ({d})
({e}, {d})[1] | torch.where(F.softshrink(({e}) * 2) > 0, {d}, 1.0) | F.threshold({e} + ({d}), 0.1, 0.2) | F.relu6({e}) - ({d})
torch.stack([{e}, F.threshold({d} - 1, 0.1, 0.2)])[1]
"""

WRITES = """
{v} += 1 | {v} *= {o} | {v}.mul_(2) | {v}.add_({o}) | {v}.copy_({o}) | {v}.zero_() | {v}[{v} > 2] = 0 | {v}.clamp_(max=3)
F.relu({v}, inplace=True) | bump({v}) | {v}.data.add_(1) | {v}.detach().mul_(2) | torch.add({v}, 1, out={v})
torch.mul({v}, 2, out={o}) | both({v}, {o}) | nn.init.constant_({v}, 2) | same({v}).add_(1) | {v}.masked_fill_({o} > 0, 1)
with torch.no_grad():>{v}.add_(1) | {v}, {o} = {o}, {v} | box = Box({v});box.bump();{v} = box.x | box = Box({v});box.write()
box = Box({v});{v}.mul_(2);{o} = box.x | w = {v};w += 1 | d = {'k': {v}};d['k'].add_(1) | {v}.neg_() | {v}.sub_({v}.mean())
d = {'k': {v}};d['k'] = d['k'] + 1;{v} = d['k'] | f1 = lambda: {v} + 1;{v} = {v} * 2;{o} = f1() | {v} /= {v}.abs().sum() + 1
f2 = later({v});{v}.mul_(2);{o} = f2({o}) | {v}.where({v} > 0, {o}).add_(1) | torch.clamp({v}, min=0, out={v})
k = 0;while k < 2:>{v} = {v} + k>k += 1 | ts = [{v}, {o}];ts = [t * 2 for t in ts];{v} = ts[0]
ts = [{v}, {o}];for i, t in enumerate(ts):>ts[i] = t + i;{o} = ts[1] | for p, q in zip([{v}], [{o}]):>p.add_(q)
"""
WRITES_OF_ROWS = """
{v}[0] = 1 | {v}[0] += 2 | {v}[1:] = {v}[:1] | {v}[0].add_(1) | fill({v}) | {v}[:1].mul_(5) | {v}.view(-1)[1] = 7
{v}[1:].view(-1)[0] = 3 | head({v}).add_(1) | w = {v}[:1];{v} = {v} + 1;w.zero_()
"""
WRITES_OF_FOUR_ROWS = """
rows({v}) | x1, x2 = {v}.chunk(2);x1.add_(1) | h1, h2 = halves({v});h2.mul_(2) | for row in {v}:>row.add_(1)
for i in range(2):>{v}[i] = {v}[i + 1] * 2 | {v}[[0, 1]] = {v}[[1, 0]] | {v}[[0, 1]] += 1
"""
WRITES_OF_SQUARES = """
{v}[:, 0] = 4 | {v}.t()[0] = 2 | {v}.diagonal().add_(1) | {v}[0][0] = 9 | {v}.transpose(0, 1)[0].mul_(3)
"""
WRITES_OF_LISTS = """
{l}[0].add_(1) | {l}[0] += 1 | for t in {l}:>t.mul_(2) | {l}.reverse() | {l}.append({v}) | {l}[0] = {v} | first({l}, {v})
"""
WRITES_OF_STATE = """
self.buf.add_(1) | self.buf[0] = 2 | self.buf += 1 | self.buf.data.mul_(2) | self.buf.view(-1)[2] = 1 | self.get().mul_(2)
self.plain = self.buf | self.plain = {v} | {v} = self.sub({v}) | self.sub({v}) | {v} = self.keep({v}) | self.shown.add_(1)
self.sub.state.add_(1) | self.sub.store({v}) | {v} = {v} + self.sub.state.sum() | self.act({v}) | {v} = self.seq({v})
self.items = [{v}];{v} = self.items[0] + 1 | self.items = [{v}];{v}.add_(1);{o} = self.items[0]
"""
WRITES_OF_SQUARE_STATE = """
self.buf = {v} | self.buf.copy_({v}) | self.buf = {v}.detach().clone() | self.put({v}) | {v} = self.shown | self.sub.write({v})
w = self.shown;self.buf.add_(1);{v} = w | {v} = self.get();self.buf.add_(1)
"""


def choices(table: str) -> list[str]:
    """The lines of a table, of which several stand in one."""
    return [one.strip() for line in table.strip().splitlines() for one in line.split(" | ")]


def lines_of(text: str) -> list[str]:
    """The lines of a choice: ``;`` ends one, ``:>`` begins a block."""
    found = []
    for part in text.split(";"):
        first, *inner = part.split(">") if ":>" in part else [part]
        found += [first, *(f"    {one}" for one in inner)]
    return found


def _shaped(table: str, shape: Shape) -> list[tuple[str, Shape]]:
    found = []
    for line in table.strip().splitlines():
        kind, _, rest = line.partition(" ")
        made: Shape = {
            "=": shape,
            "row": shape[1:],
            "two": (2, *shape[1:]),
            "rest": (3, *shape[1:]),
            "flat": (math.prod(shape),),
            "T": shape[::-1],
        }[kind]
        found += [(one, made) for one in choices(rest)]
    return found


@dataclass
class Program:
    """A program while it is made."""

    dice: random.Random
    module: bool
    names: int = 0
    lists: list[tuple[str, Shape]] = field(default_factory=list)

    def pick(self, known: dict[str, Shape], shape: Shape | None = None) -> str:
        """A variable, of a shape if one is told; "" where there is none."""
        fitting = [name for name, one in known.items() if shape is None or one == shape]
        return self.dice.choice(fitting) if fitting else ""

    def filled(self, text: str, known: dict[str, Shape], v: str) -> str:
        """A line of the tables with names in place of the braces."""
        shape = known[v]
        text = text.replace("{v}", v).replace("{o}", self.pick(known, shape))
        return text.replace("{t}", self.pick(known, shape[1:]))

    def expression(self, known: dict[str, Shape]) -> tuple[str, Shape]:
        """An expression, or two of them in one, and its shape."""
        text, shape = self.simple(known)
        if self.dice.random() < 0.7:
            return text, shape
        for _ in range(5):
            other, one = self.simple(known)
            if one == shape:
                form = self.dice.choice(choices(TOGETHER))
                return form.replace("{e}", text).replace("{d}", other), shape
        return text, shape

    def simple(self, known: dict[str, Shape]) -> tuple[str, Shape]:
        """An expression of the tables and its shape."""
        v = self.pick(known)
        shape = known[v]
        square = shape == (4, 4)
        found = _shaped(EXPRESSIONS, shape)
        if shape and shape[0] > 1:
            found += _shaped(OF_ROWS, shape)
        if shape and shape[0] == 4:
            found += _shaped(OF_FOUR_ROWS, shape)
        found += _shaped(OF_SQUARES, shape) if square else []
        for name, each in self.lists:
            found += [(f"{name}[{i}]", each) for i in (0, -1)]
            found.append((f"torch.stack({name}).sum(0)", each))
        if self.module:
            found += _shaped(OF_MODULES, shape)
            found += [(one, (4, 4)) for one in choices(STATE)] + [("self.buf[0]", (4,))]
            found += [("self.lin({v})", shape)] if shape[-1:] == (4,) else []
        text, made = self.dice.choice(found)
        return self.filled(text, known, v), made

    def write(self, known: dict[str, Shape]) -> str:
        """A statement that changes something."""
        v = self.pick(known)
        shape = known[v]
        square = shape == (4, 4)
        found = choices(WRITES)
        if shape and shape[0] > 1:
            found += choices(WRITES_OF_ROWS)
            found += ["{v}[0] = {t}", "{v}[0].copy_({t})"] if self.pick(known, shape[1:]) else []
        found += choices(WRITES_OF_FOUR_ROWS) if shape and shape[0] == 4 else []
        found += choices(WRITES_OF_SQUARES) if square else []
        for name, each in self.lists:
            table = choices(WRITES_OF_LISTS)
            fits = each == shape
            found += [one.replace("{l}", name) for one in table if fits or "{v}" not in one]
        if self.module:
            found += choices(WRITES_OF_STATE)
            found += choices(WRITES_OF_SQUARE_STATE) if square else []
            found += ["self.buf[0] = {v}"] if shape == (4,) else []
        return self.filled(self.dice.choice(found), known, v)

    def statement(self, known: dict[str, Shape], depth: int) -> list[str]:
        """The lines of a statement."""
        chance = self.dice.random()
        if chance < 0.38:
            text, shape = self.expression(known)
            name = "" if depth == 0 or self.dice.random() < 0.6 else self.pick(known, shape)
            if depth == 0:  # in a branch nothing new is bound
                name = self.pick(known, shape)
                if not name:
                    return ["pass"]
            if not name:
                self.names += 1
                name = f"v{self.names}"
            known[name] = shape
            return [f"{name} = {text}"]
        if chance < 0.80:
            return lines_of(self.write(known))
        if chance < 0.88 and depth:
            v = self.pick(known)
            name = f"l{len(self.lists) + 1}"
            second = self.dice.choice(["{o}", "{o}.clone()", "{v} * 1"])
            self.lists.append((name, known[v]))
            return [self.filled(f"{name} = [{{v}}, {second}]", known, v)]
        if not depth:
            v = self.pick(known)
            return [f"{v} = {v} * 1"]
        heads = self.dice.choice([["for i in range(2):"], ["if flag:"], ["if flag:", "else:"]])
        found = []
        for line in heads:
            found.append(line)
            for _ in range(self.dice.randint(1, 2)):
                found += [f"    {one}" for one in self.statement(dict(known), 0)]
        return found


def program(seed: int) -> tuple[str, bool]:
    """The source of a program, and whether it is a module (``M``) or a function (``f``)."""
    dice = random.Random(seed)
    made = Program(dice, dice.random() < 0.5)
    known: dict[str, Shape] = {"a": (4, 4), "b": (4, 4), "c": (4,)}
    lines = ["a, b, c = a * 1, b * 1, c * 1"] if dice.random() < 0.8 else []
    for _ in range(dice.randint(2, 5)):
        lines += made.statement(known, 1)
    results = ", ".join([*known, *(f"list({name})" for name, _ in made.lists)])
    if made.module:
        layer = dice.choice(["Identity()", "ReLU(inplace=True)", "ReLU()"])
        top = MODULE.replace("BODY", dice.choice(BODIES)).replace("LAYER", layer)
        body = top + "".join(
            f"        {line}\n" for line in [*lines, f"return {results}, self.buf"]
        )
    else:
        top = "def f(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, flag: bool):\n"
        body = top + "".join(f"    {line}\n" for line in [*lines, f"return {results}"])
    helpers = HELPERS.strip("\n").split("\n\n\n")
    used = [one for one in helpers if one.split("(")[0].split(":")[0].split()[1] + "(" in body]
    return "\n\n\n".join([*used, body]), made.module


def outcome(seed: int) -> str:
    """ "equal", "finding", "torch" where torch itself raises, or what went wrong with the program in it."""
    source, module = program(seed)
    numbers = np.random.default_rng(seed)
    inputs = [numbers.normal(size=s).astype(np.float32) for s in ((4, 4), (4, 4), (4,))]
    theirs: dict[str, Any] = {}
    exec(HEADER + source, theirs)
    try:
        with torch.no_grad():
            torch.manual_seed(0)
            model = theirs["M"]().eval() if module else theirs["f"]
            state = {n: v.clone() for n, v in model.state_dict().items()} if module else {}
            wanted = [_leaves(model(*map(torch.tensor, inputs), flag)) for flag in (True, False)]
    except Exception:
        return "torch"
    result = migrator.convert_source(HEADER + source)
    if not result.complete:
        return "finding"
    shown = f"program {seed}\n{source}\n--- converted\n{result.code}"
    try:
        ours: dict[str, Any] = {}
        exec(result.code, ours)
        port = ours["M"](rngs=nnx.Rngs(0)) if module else ours["f"]
        if module:
            migrator.load_state_dict(port, state)
            port.eval()
        draws = not module and "rngs" in inspect.signature(port).parameters
        extra = {"rngs": nnx.Rngs(0)} if draws else {}
        for flag, want in zip((True, False), wanted, strict=True):
            got = _leaves(port(*map(jnp.asarray, inputs), flag, **extra))
            for mine, other in zip(got, want, strict=True):
                np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-4)
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{shown}"
    return "equal"


def _leaves(results: object) -> list[np.ndarray]:
    leaves = jax.tree.leaves(results, is_leaf=lambda one: isinstance(one, nnx.Variable))
    return [np.asarray(one).copy() for one in leaves]
