"""Random constructors: what modules keep, share and hand to one another, for the comparison with torch.

Every state_dict is loaded with other numbers than the constructor made, so that it shows what shares memory with what.
"""

from __future__ import annotations

import random
import re
from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

import migrator
from tests.convert.programs import choices, lines_of
from tests.convert.tools import HEADER

MODULES = """
class Child(nn.Module):
    def __init__(self, t, n=1):
        super().__init__()
        KEEP
        self.n = n
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        CHANGE
        return self.fc(x) * self.t + self.n

    def get(self):
        return self.t

    def put(self, v):
        self.t = v

    def shift(self):
        self.t = self.t + 1


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("base", torch.ones(4))
        self.k = 2

    def tick(self):
        self.k += 1
        self.base.add_(0.5)


class M(Base):
    scale = 3.0

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.arange(4.0))
        self.register_buffer("b", torch.arange(4.0) + 1PERSISTENT)
        v = torch.full((4,), 0.5)
        self.fc1, self.fc2 = nn.Linear(4, 4), nn.Linear(4, 4)
INIT

    def forward(self, x):
        y = self.fc1(x) + self.fc2(x) * self.w + self.b
FORWARD
        return y
"""
KEEP = """
self.t = t | self.register_buffer("t", t) | self.t = nn.Parameter(t) | self.t = t.clone() | self.t = t * 2
self.t = nn.Parameter(t.clone()) | self.register_buffer("t", t.clone(), persistent=False) | setattr(self, "t", t)
self.register_buffer("t", t * 2) | self.t = nn.Parameter(t, requires_grad=False) | self.t = t.detach().clone()
"""
CHANGE = """
pass | self.t = self.t + 1 | self.t.add_(1) | self.n += 1 | self.t = x.mean(0) | self.last = x
if self.training:>self.n = self.n + 1
"""
GIVEN = "v | self.b | self.w | self.w.data | self.b.clone() | torch.ones(4)"
INIT = """
self.c = v | self.c = v.clone() | self.child = Child({t}) | self.child = Child(t={t}, n=2) | self.other = Child(v + 1)
self.d = self.b | self.d = self.w | self.other = self.child | self.other = copy.deepcopy(self.child)
self.child.t = self.other.t | self.kept = [self.b, v] | self.fc1.weight = self.fc2.weight | self.fc1.bias = None
self.fc1.weight.data = self.fc2.weight.data | nn.init.ones_(self.fc1.weight) | setattr(self, "k2", v) | self.e = None
self.mods = nn.ModuleList([Child(v * i) for i in range(2)]) | self.mods = nn.ModuleList([Child({t}) for i in range(2)])
self.mods = nn.ModuleList([self.child for i in range(2)]) | self.seq = nn.Sequential(self.child, nn.ReLU())
for i in range(2):>self.register_buffer(f"b{i}", v * i) | self.w.data.fill_(2) | self.b.mul_(2) | self.b = self.b + 1
self.fc1.weight.data.mul_(0.5) | with torch.no_grad():>self.w.add_(1) | self.par = nn.Parameter(v) | self.count = 0
self.pl = nn.ParameterList([nn.Parameter(v * i) for i in range(2)]) | self.register_parameter("rp", nn.Parameter(v + 1))
self.pl = nn.ParameterList([self.w, nn.Parameter(v.clone())]) | self.table = {"a": v, "b": self.b}
self.w2 = nn.Parameter(self.w.detach().clone()) | self.register_buffer("shared", self.b) | self.tick() | del self.k
self.register_buffer("num", torch.tensor(0)) | for p in self.fc2.parameters():>p.requires_grad = False
for p in self.parameters():>p.data.mul_(0.9) | self.md = nn.ModuleDict({"a": self.child, "b": nn.Linear(4, 4)})
self.child.put(v) | self.child.shift() | self.got = self.child.get() | self.other.t = self.b | self.child.fc = self.fc1
self.parts = [self.child, self.fc1] | self.fn = self.child.forward
"""
FORWARD = """
y = y + self.c | y = y + self.child(x) | y = y + self.other(x) | y = y + self.d | y = y + self.kept[0] + self.kept[1]
y = y + self.k2 | for m in self.mods:>y = y + m(x) | y = y + self.seq(x) | y = y + self.b1 | y = y + self.pl[0] * self.pl[1]
y = y + self.par | y = y + self.rp | y = y + self.table["a"] + self.table["b"] | y = y + self.w2 | y = y + self.shared
self.count += 1;y = y + self.count | self.num += 1;y = y + self.num | y = y + self.md["a"](x) + self.md["b"](x)
y = y + self.got | y = y + self.fn(x) | for p in self.parts:>y = y + p(x)
self.b += 1 | self.b = self.b * 2 | self.b.mul_(0.5) | self.child.t.add_(1) | self.child.t = self.child.t * 2 | self.tick()
self.base[0] = 7 | self.w.data.add_(1) | with torch.no_grad():>self.w.mul_(0.5) | self.child.shift() | self.child.n = 5
if self.training:>self.b.add_(1) | self.c = self.c + 1 | self.c += 1 | self.d = self.d + 1 | self.d.add_(1)
self.kept[0] = x[0] | self.kept.append(x[0]) | self.table["a"] = x[1] | self.mods[0].shift() | self.mods[1].n += 1
self.fc1.weight.data.mul_(0.5) | y = y * self.scale | y = y + self.child.get() | y = y + self.base | y = y * self.k
self.b[1] += 2 | b = self.b;b.add_(1) | self.b = x.mean(0) | self.shared.add_(1) | self.got.add_(1)
"""
_THERE = frozenset(
    "b w base k tick scale training parameters register_buffer register_parameter fc1 fc2".split()
)


def _read(line: str) -> set[str]:
    """The attributes that a line needs to be there."""
    return set(re.findall(r"self\.(\w+)", re.sub(r"^self\.\w+ = ", "", line)))


def _made(line: str) -> set[str]:
    named = re.findall(r'(?:register_\w+|setattr)\((?:self, )?f?"(\w+)', line)
    return (
        set(re.findall(r"^self\.(\w+) = ", line))
        | set(named)
        | ({"b1"} if "{i}" in line else set())
    )


def _lines(line: str) -> list[str]:
    return [f"        {one}" for one in lines_of(line)]


def construction(seed: int) -> str:
    """The source of a module ``M``."""
    dice = random.Random(seed)
    have = set(_THERE)
    init: list[str] = []
    for _ in range(dice.randint(2, 5)):
        fitting = [one for one in choices(INIT) if _read(one) <= have]
        line = (
            "self.child = Child({t})" if not init and dice.random() < 0.7 else dice.choice(fitting)
        )
        line = line.replace("{t}", dice.choice(choices(GIVEN)))
        have |= _made(line)
        init.append(line)
    new = have - _THERE
    reading = [one for one in choices(FORWARD) if _read(one) <= have and _read(one) & new]
    others = [one for one in choices(FORWARD) if _read(one) <= have]
    forward = dice.sample(reading, min(len(reading), dice.randint(1, 3)))
    for _ in range(dice.randint(0, 2)):
        forward.insert(dice.randint(0, len(forward)), dice.choice(others))
    change = "\n".join(_lines(dice.choice(choices(CHANGE)))).strip()
    text = MODULES.replace("KEEP", dice.choice(choices(KEEP))).replace("CHANGE", change)
    text = text.replace("PERSISTENT", dice.choice(["", "", ", persistent=False"]))
    text = text.replace("INIT", "\n".join(x for line in init for x in _lines(line)))
    return text.replace("FORWARD", "\n".join(x for line in forward for x in _lines(line)))


def _loaded(model: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Other numbers for all of a state_dict, alike where torch has one tensor under two names."""
    numbers = torch.Generator().manual_seed(seed)
    found: dict[str, torch.Tensor] = {}
    first: dict[int, str] = {}
    for name, value in model.state_dict().items():
        key = first.setdefault(value.data_ptr(), name)
        new = (
            torch.rand(value.shape, generator=numbers)
            if value.is_floating_point()
            else value.clone()
        )
        found[name] = found.get(key, new)
    return found


MODES = (False, True, False)


def outcome(seed: int) -> str:
    """ "equal", "finding", "torch" where torch itself raises, or what went wrong with the module in it."""
    source = "import copy\n" + HEADER + construction(seed)
    theirs: dict[str, Any] = {}
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))
    try:
        exec(source, theirs)
        model = theirs["M"]()
        model.load_state_dict(_loaded(model, seed))
        state = {name: value.clone() for name, value in model.state_dict().items()}
        wanted = []
        with torch.no_grad():
            for mode in MODES:
                wanted.append(model.train(mode)(x.clone()).clone())
    except Exception:
        return "torch"
    result = migrator.convert_source(source)
    if not result.complete:
        return "finding"
    shown = f"construction {seed}\n{source}\n--- converted\n{result.code}"
    try:
        ours: dict[str, Any] = {}
        exec(result.code, ours)
        port = ours["M"](rngs=nnx.Rngs(0))
        assert set(migrator.to_state_dict(port)) == set(state)
        migrator.load_state_dict(port, state)
        for mode, want in zip(MODES, wanted, strict=True):
            port.train() if mode else port.eval()
            got = port(jnp.asarray(x.numpy()))
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-3, atol=1e-4)
        after = migrator.to_state_dict(port)
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(after[name], value.numpy(), rtol=1e-3, atol=1e-4)
    except Exception as error:
        return f"{type(error).__name__}: {error}\n{shown}"
    return "equal"
