"""Models whose forward pass branches and loops: over sizes, flags, lists of layers, optional arguments.

Statements are put together at random, one inside the other, from what people write: ``if`` chains with early returns,
loops with ``break`` and ``else``, ``try``, ``match``, closures, generators, recursion. What is asked is known while the
model is traced, so that all of it may stay Python.
"""

from __future__ import annotations

import random

import torch

from tests.convert.fuzz.compare import Program
from tests.convert.fuzz.templates import indented

MODEL = """class Block(nn.Module):
    def __init__(self, dim, act="relu", skip=True):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.act = act
        self.skip = skip
        self.norm = nn.LayerNorm(dim) if skip else None

    def forward(self, x, scale=None):
        h = self.fc(x)
        if self.norm is not None:
            h = self.norm(h)
        if self.act == "relu":
            h = F.relu(h)
        elif self.act == "tanh":
            h = torch.tanh(h)
        else:
            return x
        if scale is not None:
            h = h * scale
        return x + h if self.skip else h


class M(nn.Module):
    def __init__(self, dim=4, n=3, mode="a", extra=None, depth=2):
        super().__init__()
        self.n = n
        self.mode = mode
        self.extra = extra
        self.fc = nn.Linear(dim, dim)
        acts = ["relu", "tanh", "none"]
        self.blocks = nn.ModuleList([Block(dim, acts[i % 3], skip=i != 1) for i in range(depth)])
        self.table = nn.ModuleDict({"a": nn.Linear(dim, dim), "b": nn.Identity()})
        self.acts = [F.relu, torch.tanh, F.gelu]
        self.sizes = (1, 2, 3)
        self.opt = nn.Linear(dim, dim) if mode == "a" else None
        self.register_buffer("bias", torch.linspace(-1, 1, dim))

    def step(self, x, k=1):
        for _ in range(k):
            x = x * 0.5 + self.bias
            if k > 2:
                break
        else:
            x = x + 1
        return x

    def deep(self, x, n):
        if n == 0:
            return self.fc(x)
        if n % 2:
            return self.deep(x + n, n - 1)
        return self.deep(x, n - 1) * 0.5

    def gen(self, x):
        for b in self.blocks:
            x = b(x)
            yield x

    def forward(self, x, mask=None, flag=False, items=None):
"""
CONDITIONS = """
flag
not flag
self.training
self.n > 2
0 < self.n <= 3
self.n == x.shape[0]
x.dim() == 2
x.size(1) % 2 == 0
mask is None
mask is not None
isinstance(items, (tuple, list))
self.mode in ("a", "c")
self.extra
hasattr(self, "missing")
len(items or ()) > 0
self.opt is not None
(q := x.shape[-1]) > 3 and q < 9
any(b.skip for b in self.blocks)
"b" in self.table
isinstance(self.opt, nn.Linear)
""".strip().splitlines()
VALUES = """
h + x
self.fc(h)
torch.relu(h)
self.step(h, 2)
self.step(h, self.n)
self.blocks[-1](h)
self.table[self.mode](h)
self.deep(h, 3)
(lambda t: t + self.n)(h)
torch.stack([b(h) for b in self.blocks if b.skip]).sum(0)
sum([a(h) for a in self.acts])
list(self.gen(h))[-1]
h * (mask if mask is not None else 1)
(self.opt or self.fc)(h)
h + (self.extra or 2)
(w := h * 2) + w
[f(h) for f, k in zip(self.acts, self.sizes) if k != 2][-1]
{k: m(h) for k, m in self.table.items()}["a"]
getattr(self, "fc")(h)
(h, x)[flag]
""".strip().splitlines()
LOOPS = [
    ("for i in range(3):", []),
    ("for i in range(x.shape[0]):", []),
    ("for i in self.sizes:", []),
    ("for i in sorted(self.sizes, reverse=True):", []),
    ("for i, b in enumerate(self.blocks):", ["h = b(h)"]),
    ("for i, b in enumerate(reversed(self.blocks)):", ["h = b(h)"]),
    ("for i, b in zip(self.sizes, self.blocks):", ["h = b(h, i)"]),
    ("for i, (k, b) in enumerate(self.table.items(), 1):", ['if k == "a":', "    h = b(h)"]),
    ("for i, b in enumerate(items or []):", ["h = h + b"]),
    ("for i, b in enumerate(self.gen(h)):", ["h = b"]),
]
OTHERS = [
    ["try:", "    h = h + self.extra", "except TypeError:", "    h = h - 1"],
    [
        "try:",
        "    layer = self.table[self.mode]",
        "except KeyError:",
        "    layer = self.fc",
        "h = layer(h)",
    ],
    ["match self.mode:", '    case "a":', "        h = h * 2", "    case _:", "        h = h - 1"],
    ["f = []", "for j in range(3):", "    f.append(lambda t: t + j)", "h = f[0](h)"],
    ["f = [lambda t, k=k: t * k for k in self.sizes]", "h = f[0](h) + f[-1](x)"],
    [
        "kept = [h]",
        "while len(kept) < 3:",
        "    kept.append(self.step(kept[-1]))",
        "h = kept.pop() + kept[0]",
    ],
    [
        "c = 0",
        "def count(t):",
        "    nonlocal c",
        "    c = c + 1",
        "    return t * c",
        "h = count(h) + count(x)",
    ],
    [
        "k = 0",
        "while True:",
        "    k += 1",
        "    if k > self.n:",
        "        break",
        "    h = h * 0.5 + k",
    ],
    ["if mask is None:", "    mask = torch.ones_like(x)", "h = h * mask"],
    ["del mask", "mask = None"],
]


def program(seed: int) -> Program:
    """Four to seven statements, called with and without the optional arguments."""
    draw = random.Random(seed)
    body = ["h = x * 1"]
    for _ in range(draw.randint(4, 7)):
        body += _statement(draw, 0, False)
    body.append(draw.choice(["return h", "return h, x", 'return {"a": h, "b": x}']))
    calls = [
        "m(x)",
        "m(x, y)",
        "m(x, None, True)",
        "m(x, y, True, [x, y])",
        "m(x, flag=True, items=(y,))",
    ]
    made = ["M()", 'M(4, 2, "b")', 'M(4, 4, "a", 1.5)', 'M(mode="b", extra=0, depth=3)']
    return Program(
        source=MODEL + "\n".join(indented(body, 2)) + "\n",
        made=draw.choice(made),
        calls=draw.sample(calls, 2),
        inputs={"x": torch.randn(3, 4), "y": torch.rand(3, 4)},
    )


def _condition(draw: random.Random, looping: bool) -> str:
    if looping and draw.random() < 0.5:
        return draw.choice(["i % 2 == 0", "i > 0", "i in (0, 2)", "not i"])
    one = draw.choice(CONDITIONS)
    if draw.random() < 0.2:
        return f"{one} {draw.choice(['and', 'or'])} {draw.choice(CONDITIONS)}"
    return one


def _assignment(draw: random.Random, looping: bool) -> list[str]:
    value = draw.choice(VALUES)
    if draw.random() < 0.25:
        value = f"{value} if {_condition(draw, looping)} else {draw.choice(VALUES)}"
    return [f"h = {value}"]


def _statement(draw: random.Random, depth: int, looping: bool) -> list[str]:
    """A statement and what is in it, at most three deep."""
    sort = draw.random()
    if depth == 3 or sort < 0.35:
        return _assignment(draw, looping)

    def block(loop: bool = looping) -> list[str]:
        inner = [_statement(draw, depth + 1, loop) for _ in range(draw.randint(1, 2))]
        return indented([line for lines in inner for line in lines])

    if sort < 0.55:
        lines = [f"if {_condition(draw, looping)}:", *block()]
        if draw.random() < 0.3:
            lines += [f"elif {_condition(draw, looping)}:", *block()]
        return [*lines, "else:", *block()] if draw.random() < 0.5 else lines
    if sort < 0.63:
        return [
            f"if {_condition(draw, looping)}:",
            f"    return {draw.choice(['h', 'h * 2', 'x'])}",
        ]
    if sort < 0.83:
        head, lines = draw.choice(LOOPS)
        lines = [*indented(lines), *block(True)]
        if draw.random() < 0.5:
            end = draw.choice(["break", "continue"])
            lines += indented(
                [f"if {_condition(draw, True)}:", f"    {end}", *_assignment(draw, True)]
            )
        return [head, *lines, *(["else:", *block()] if draw.random() < 0.25 else [])]
    return draw.choice(OTHERS)
