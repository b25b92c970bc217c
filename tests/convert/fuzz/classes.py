"""Models that are built of several classes: bases and mixins, registries, configurations, containers, factories, wrappers.

A model does two to five things with classes of its file or with torch's layers; it is a plain module, derives from one
that has parts too, or leaves all to a base that calls it by its method's names.
"""

from __future__ import annotations

import random
from functools import cache

import torch

from tests.convert.fuzz import class_families, class_features, class_tables, layer_features
from tests.convert.fuzz.compare import Program
from tests.convert.fuzz.templates import indented, sections

DEFINITIONS = {**class_tables.DEFINITIONS, **class_families.DEFINITIONS}
PLAIN = """
class M(nn.Module):
    n0 = 3

    def __init__(self, n=None, *args, cfg=None, **kwargs):
        super().__init__()
"""
DERIVED = """
class Root(nn.Module):
    n0 = 2

    def __init__(self, n=None, **kwargs):
        super().__init__()
        self.root = nn.Linear(4, 4)
        self.kind = kwargs.get("kind", "x")

    def start(self, x):
        return self.root(x)


class M(Root):
    n0 = Root.n0 + 1

    def __init__(self, n=None, *, cfg=None, **kwargs):
        super().__init__(n, **kwargs)
"""
CALLED = """
class Root(nn.Module):
    n0 = 3

    def __init__(self, n=None, cfg=None, **kwargs):
        super().__init__()
        self.n = n or self.n0
        self.build(cfg, **kwargs)

    def forward(self, x):
        y = x
        for name in self.steps:
            y = getattr(self, name)(y)
        return y


class M(Root):
    steps = ["run", "end"]

    def end(self, x):
        return x + 1

    def build(self, cfg=None, **kwargs):
"""
INITIAL = """
    def init_weights(self, m):
        if type(m) == nn.Linear:
            nn.init.xavier_uniform_(m.weight)
            if m.bias is not None:
                m.bias.data.fill_(0.01)
"""
IMPORTS = [
    ("copy.", "import copy"),
    ("ABC", "from abc import ABC, abstractmethod"),
    ("OrderedDict", "from collections import OrderedDict"),
    ("namedtuple(", "from collections import namedtuple"),
    ("@dataclass", "from dataclasses import dataclass, field"),
    ("(Enum)", "from enum import Enum"),
    ("partial(", "from functools import partial"),
]
TYPES = "Dict Generic List NamedTuple Optional Protocol Tuple TypeVar".split()


def program(seed: int) -> Program:
    """A model of two to five features, and the classes and functions that they need in front of it."""
    draw = random.Random(seed)
    several = draw.sample(_features(class_features.FEATURES), draw.randint(1, 3))
    several += draw.sample(_features(layer_features.FEATURES), draw.randint(1, 2))
    draw.shuffle(several)
    needed, made, used = list[str](), list[str](), list[list[str]]()
    for number, (needs, init, use) in enumerate(several):
        needed += [name for name in needs if name not in needed]
        made += [line.replace("#", str(number)) for line in init]
        lines = [line.replace("#", str(number)) for line in use]
        if draw.random() < 0.2:
            lines = [f"if self.n > {draw.choice([1, 5])}:", *indented(lines)]
        used.insert(len(used) if draw.random() < 0.6 else 0, lines)
    draw.shuffle(needed)
    top = draw.choice([PLAIN, DERIVED, CALLED])
    made = ["self.first = nn.Linear(4, 4)", "self.other = nn.Linear(4, 4)", *made]
    if top is not CALLED:
        made = ["self.n = n or self.n0", *made]
    begins = "y = self.start(x)" if top is DERIVED else "y = self.other(x) + self.first(x)"
    given = ["y", "y", "y, x * 2", "[y, self.first(y)]", '{"y": y, "x": [x]}']
    last = "return y" if top is CALLED else f"return {draw.choice(given)}"
    body = [begins, *(line for lines in used for line in lines), last]
    name = "run" if top is CALLED else "forward"
    text = [top.strip("\n"), *indented(made, 2)]
    if any("self.init_weights" in line for line in made):
        text.append(INITIAL.rstrip("\n"))
    text += ["", f"    def {name}(self, x):", *indented(body, 2)]
    full = "\n\n".join([*(DEFINITIONS[one].strip("\n") + "\n" for one in needed), "\n".join(text)])
    return Program(
        source=_imports(full) + "\n\n" + full + "\n",
        made=draw.choice(["M()", "M(4)", "M(n=2)", 'M(kind="z")']),
        inputs={"x": torch.randn(3, 4)},
        modes=(False, True),
    )


@cache
def _features(text: str) -> list[tuple[list[str], list[str], list[str]]]:
    """What each feature needs, what the constructor makes for it, and how it is used."""
    found = []
    for one in text.split("===="):
        (needs, init), (_, use) = sections(one).items()
        found.append(([] if needs == "init" else [needs], init, use))
    return found


def _imports(text: str) -> str:
    lines = [line for word, line in IMPORTS if word in text]
    types = [one for one in TYPES if any(f"{one}{sign}" in text for sign in "[()")]
    if types:
        lines.append(f"from typing import {', '.join(types)}")
    return "\n".join(lines)
