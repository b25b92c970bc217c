"""Functions, layers and objects of another file that write to what they are called with, by whatever way they get there.

Each kind of writer is used in each way, in a package whose model reads the tensor again; it is refused or equal. A few
pairs are drawn by the day, or by PROGRAMS_SEED; all of them are tried in the sweep.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

WRITERS = {
    "an object": "class W:\n    def __call__(self, x):\n        x.add_(1)\n        return x\n\n\nw = W()",
    "augmented": "def w(x):\n    x += 1\n    return x",
    "method": "def w(x):\n    x.mul_(2)\n    return x",
    "item": "def w(x):\n    x[:, 0] = 0\n    return x",
    "a view": "def w(x):\n    y = x.view(-1)\n    y += 1\n    return y.sum()",
    "torch function": "def w(x):\n    return torch.relu_(x)",
    "inplace": "def w(x):\n    return F.relu(x, inplace=True)",
    "data": "def w(x):\n    x.data.add_(1)\n    return x * 1",
    "rows": "def w(x):\n    for i in range(2):\n        x[i] *= 2\n    return x",
    "inner function": "def w(x):\n    def go(t):\n        t.add_(1)\n    go(x)\n    return x * 2",
    "a list": "def w(x):\n    xs = [x]\n    xs[0].add_(1)\n    return x * 1",
    "a dict": "def w(x):\n    d = {'a': x}\n    d['a'] += 1\n    return d['a'] * 1",
    "another function": "def other(x):\n    x += 1\n\n\ndef w(x):\n    other(x)\n    return x * 2",
    "another name": "def w(x):\n    y = x\n    y -= 2\n    return y",
    "squeezed": "def w(x):\n    x = x.squeeze(0)\n    x *= 2\n    return x",
    "out": "def w(x):\n    torch.add(x, 1, out=x)\n    return x",
    "first values": "def w(x):\n    nn.init.ones_(x)\n    return x",
    "told by default": "def w(x, *, inplace=True):\n    return F.relu(x, inplace=inplace)",
    "decorated": "def deco(f):\n    @functools.wraps(f)\n    def go(x):\n        return f(x)\n    return go\n\n\n"
    "@deco\ndef w(x):\n    x += 1\n    return x",
    "partial": "def by(x, k):\n    x *= k\n    return x\n\n\nw = functools.partial(by, k=3.0)",
    "lambda": "w = lambda x: x.add_(1)",
    "static method": "class T:\n    @staticmethod\n    def go(x):\n        x += 1\n        return x\n\n\nw = T.go",
    "not at all": "def w(x):\n    return x * 2",
}
LAYERS = {
    "own layer": "class W(nn.Module):\n    def forward(self, x):\n        x += 1\n        return x\n\n\nw = W()",
    "layer of torch": "w = nn.ReLU(inplace=True)",
    "layers in a row": "w = nn.Sequential(nn.ReLU(True), nn.Tanh())",
}
USES = {
    "by its name": ("from . import fns", "pass", "getattr(fns, 'w')(x)"),
    "its name": ("from .fns import w", "pass", "w(x)"),
    "another name": ("from .fns import w as g", "pass", "g(x)"),
    "its file": ("from . import fns", "pass", "fns.w(x)"),
    "a star": ("from .fns import *", "pass", "w(x)"),
    "a dict": ("from .fns import w\nT = {'a': w, 'b': torch.tanh}", "pass", "T['a'](x)"),
    "a list": ("from .fns import w\nT = [w, torch.tanh]", "pass", "T[0](x)"),
    "an attribute": ("from .fns import w", "self.f = w", "self.f(x)"),
    "one of two": ("from .fns import w", "self.f = w if self.k else torch.tanh", "self.f(x)"),
    "chosen here": ("from .fns import w", "pass", "(w if self.k else torch.tanh)(x)"),
    "a function": ("from .fns import w\ndef run(f, t):\n    return f(t)", "pass", "run(w, x)"),
    "a getter": (
        "from .fns import w\ndef get(n):\n    return w if n else torch.tanh",
        "self.f = get(1)",
        "self.f(x)",
    ),
    "a wrapper": ("from .fns import w\nfrom .runs import Wrap", "self.f = Wrap(w)", "self.f(x)"),
    "a residual": ("from .fns import w\nfrom .runs import Res", "self.f = Res(w)", "self.f(x)"),
    "a getter there": ("from .runs import get", "self.f = get('w')", "self.f(x)"),
    "a caller there": ("from .runs import call_w", "pass", "call_w(x)"),
    "a view": ("from .fns import w", "pass", "w(x[:, :])"),
    "within a call": ("from .fns import w", "pass", "torch.tanh(w(x))"),
    "a comprehension": ("from .fns import w", "pass", "[f(x) for f in (w,)][0]"),
}
FOR_FUNCTIONS = {
    "partial": ("from .fns import w", "pass", "functools.partial(w)(x)"),
    "lambda": ("from .fns import w\ng = lambda t: w(t)", "pass", "g(x)"),
    "map": ("from .fns import w", "pass", "list(map(w, [x]))[0]"),
    "reduce": ("from .fns import w", "pass", "functools.reduce(lambda a, f: f(a), [w], x)"),
    "a default": ("from .fns import w\ndef go(t, f=w):\n    return f(t)", "pass", "go(x)"),
    "a keyword": ("from .fns import w", "pass", "w(x=x)"),
    "a starred list": ("from .fns import w", "pass", "w(*[x])"),
}
CLASSES = {
    "augmented": "class W(nn.Module):\n    def forward(self, x):\n        x += 1\n        return x",
    "method": "class W(nn.Module):\n    def forward(self, x):\n        return x.mul_(2)",
    "a layer": "class W(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.act = nn.ReLU(inplace=True)\n\n    def forward(self, x):\n        return self.act(x)",
    "a Sequential": "class W(nn.Sequential):\n    def __init__(self):\n"
    "        super().__init__(nn.ReLU(inplace=True), nn.Tanh())",
    "a derived layer": "class W(nn.ReLU):\n    def __init__(self):\n        super().__init__(inplace=True)",
    "a method of a base": "class B(nn.Module):\n    def go(self, x):\n        x[:, 0] = 0\n        return x\n\n\n"
    "class W(B):\n    def forward(self, x):\n        return self.go(x)",
    "an option": "class W(nn.Module):\n    def __init__(self, inplace=True):\n        super().__init__()\n"
    "        self.inplace = inplace\n\n    def forward(self, x):\n        return F.relu(x, inplace=self.inplace)",
    "layers in a row": "class W(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.seq = nn.Sequential(nn.Identity(), nn.ReLU(True))\n\n    def forward(self, x):\n"
    "        return self.seq(x) * 2",
    "a view": "class W(nn.Module):\n    def forward(self, x):\n        y = x.view(-1)\n        y.clamp_(0, 1)\n"
    "        return x * 2",
    "a loop over layers": "class W(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.layers = nn.ModuleList([nn.ReLU(True), nn.Tanh()])\n\n    def forward(self, x):\n"
    "        for layer in self.layers:\n            x = layer(x)\n        return x",
    "a part": "class Inner(nn.Module):\n    def forward(self, x):\n        x.sub_(1)\n        return x\n\n\n"
    "class W(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.inner = Inner()\n\n"
    "    def forward(self, x):\n        return self.inner(x) * 2",
    "not at all": "class W(nn.Module):\n    def forward(self, x):\n        return x * 2",
}
OF_CLASSES = {
    "an attribute": ("from .fns import W", "self.f = W()", "self.f(x)"),
    "its file": ("from . import fns", "self.f = fns.W()", "self.f(x)"),
    "a list": ("from .fns import W", "self.f = nn.ModuleList([W(), nn.Tanh()])", "self.f[0](x)"),
    "a dict": ("from .fns import W", "self.f = nn.ModuleDict({'a': W()})", "self.f['a'](x)"),
    "a Sequential": ("from .fns import W", "self.f = nn.Sequential(W(), nn.Tanh())", "self.f(x)"),
    "a list for a Sequential": (
        "from .fns import W",
        "layers = []; layers.append(W()); layers.append(nn.Tanh()); self.f = nn.Sequential(*layers)",
        "self.f(x)",
    ),
    "behind another": (
        "from .fns import W",
        "self.f = nn.Sequential(nn.Identity(), W())",
        "self.f(x)",
    ),
    "a table": ("from .fns import W\nT = {'a': W, 'b': nn.Tanh}", "self.f = T['a']()", "self.f(x)"),
    "a list of classes": ("from .fns import W\nT = [W, nn.Tanh]", "self.f = T[0]()", "self.f(x)"),
    "a function there": ("from .runs import make", "self.f = make('w')", "self.f(x)"),
    "a getter there": ("from .runs import get_class", "self.f = get_class('w')()", "self.f(x)"),
    "derived": ("from .fns import W\nclass S(W):\n    pass", "self.f = S()", "self.f(x)"),
    "a wrapper": ("from .fns import W\nfrom .runs import Wrap", "self.f = Wrap(W())", "self.f(x)"),
    "a residual": ("from .fns import W\nfrom .runs import Res", "self.f = Res(W())", "self.f(x)"),
    "an argument": (
        "from .fns import W\nfrom .runs import Block",
        "self.f = Block(W)",
        "self.f(x)",
    ),
    "a default": ("from .runs import BlockW", "self.f = BlockW()", "self.f(x)"),
    "an argument here": (
        "from .fns import W\nclass Own(nn.Module):\n    def __init__(self, act=nn.Tanh):\n        super().__init__()\n"
        "        self.act = act()\n\n    def forward(self, x):\n        return x + self.act(x)",
        "self.f = Own(W)",
        "self.f(x)",
    ),
    "one of two": ("from .fns import W", "self.f = W() if self.k else nn.Tanh()", "self.f(x)"),
    "one of two classes": (
        "from .fns import W",
        "self.f = (W if self.k else nn.Tanh)()",
        "self.f(x)",
    ),
    "a name": ("from .fns import W", "setattr(self, 'f', W())", "self.f(x)"),
    "a function here": (
        "from .fns import W\ndef call(m, t):\n    return m(t)",
        "self.f = W()",
        "call(self.f, x)",
    ),
    "a caller there": (
        "from .fns import W\nfrom .runs import call",
        "self.f = W()",
        "call(self.f, x)",
    ),
    "made there and then": ("from .fns import W", "pass", "W()(x)"),
    "a checkpoint": (
        "from .fns import W\nfrom torch.utils.checkpoint import checkpoint",
        "self.f = W()",
        "checkpoint(self.f, x, use_reentrant=False)",
    ),
    "a zip": (
        "from .fns import W",
        "self.f = nn.ModuleList([W()])",
        "[m(t) for m, t in zip(self.f, [x])][0]",
    ),
}
OF_MODULES = {
    "its base": (
        "from .fns import W\nclass S(W):\n    def forward(self, x):\n        return super().forward(x)",
        "self.f = S()",
        "self.f(x)",
    ),
    "by its method": ("from .fns import W", "self.f = W()", "self.f.forward(x)"),
    "by its operator": ("from .fns import W", "self.f = W()", "self.f.__call__(x)"),
}
METHODS = {
    f"{name} {kind}": f"class W{base}:\n    def go(self, x):\n        {body}\n        return x\n"
    for kind, base in {"of an object": "", "of a module": "(nn.Module)"}.items()
    for name, body in {
        "augmented": "x += 1",
        "method": "x.mul_(2)",
        "item": "x[:, 0] = 0",
        "a view": "y = x.view(-1)\n        y -= 1",
        "not at all": "x = x * 2",
    }.items()
}
OF_METHODS = {
    "made there and then": ("from .fns import W", "pass", "W().go(x)"),
    "an attribute": ("from .fns import W", "self.o = W()", "self.o.go(x)"),
    "a local name": ("from .fns import W", "pass", "[o.go(x) for o in [W()]][0]"),
    "its file": ("from . import fns", "self.o = fns.W()", "self.o.go(x)"),
    "by the class": ("from .fns import W", "self.o = W()", "W.go(self.o, x)"),
    "a starred list": ("from .fns import W", "self.o = W()", "self.o.go(*[x])"),
    "a keyword": ("from .fns import W", "self.o = W()", "self.o.go(x=x)"),
    "a name": ("from .fns import W", "self.o = W()", "getattr(self.o, 'go')(x)"),
    "a value": ("from .fns import W", "self.o = W()", "list(map(self.o.go, [x]))[0]"),
    "derived": ("from .fns import W\nclass S(W):\n    pass", "self.o = S()", "self.o.go(x)"),
    "a function": (
        "from .fns import W\ndef run(o, t):\n    return o.go(t)",
        "self.o = W()",
        "run(self.o, x)",
    ),
}
HEAD = "import functools\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
OF_FUNCTIONS_THERE = """

def get(n):
    return {"w": w, "t": torch.tanh}[n]


def call_w(t):
    return w(t)
"""
OF_CLASSES_THERE = """

def make(n):
    if n == "w":
        return W()
    return nn.Tanh()


def get_class(n):
    return {"w": W, "t": nn.Tanh}[n]


def call(m, t):
    return m(t)


class Block(nn.Module):
    def __init__(self, act=nn.Tanh):
        super().__init__()
        self.act = act()

    def forward(self, t):
        return t + self.act(t)


class BlockW(nn.Module):
    def __init__(self, act=W):
        super().__init__()
        self.act = act()

    def forward(self, t):
        return t + self.act(t)
"""
RUNS = """

class Wrap(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, t):
        return self.f(t)


class Res(nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, t):
        return t + self.f(t)
"""
NET = f"""{HEAD}IMPORT


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = True
        INIT

    def forward(self, x):
        x = x - 1
        y = USE
        return x + y
"""
EVERY = [
    *itertools.product(WRITERS.items(), (USES | FOR_FUNCTIONS).items()),
    *itertools.product(LAYERS.items(), USES.items()),
    *itertools.product(CLASSES.items(), OF_CLASSES.items()),
    *itertools.product(CLASSES.items(), OF_MODULES.items()),
    *itertools.product(METHODS.items(), OF_METHODS.items()),
]
_PLAIN = ("w(x)", "g(x)", "fns.w(x)", "T['a'](x)", "call_w(x)", "w(x[:, :])", "torch.tanh(w(x))")
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
X = torch.linspace(-1, 2, 8).reshape(2, 4)


def _check(root: Path, writer: str, use: tuple[str, str, str]) -> None:
    """Convert, and compare where nothing is told."""
    imported, init, call = use
    net = NET.replace("IMPORT", imported).replace("USE", call)
    net = net.replace("INIT", init.replace("; ", "\n        "))
    files = {"fns.py": f"{HEAD}\n\n{writer}\n", "net.py": net}
    if "runs" in imported:
        classes = "class W(" in writer
        own = OF_CLASSES_THERE if classes else OF_FUNCTIONS_THERE
        files["runs.py"] = f"{HEAD}from .fns import {'W' if classes else 'w'}\n{own}{RUNS}"
    found = convert(root, files)
    if blocking(found):
        harmless = writer == WRITERS["not at all"] and call in _PLAIN
        assert not harmless
        assert writer != CLASSES["not at all"]
        return
    theirs = UserCode(root / "src").load(root / "src/pkg/net.py").Net().eval()
    made = UserCode(root / "out").load(root / "out/pkg/net.py").Net
    ours = (
        made(rngs=nnx.Rngs(0)) if "rngs" in inspect.signature(made.__init__).parameters else made()
    )
    with torch.no_grad():
        want = theirs(X.clone()).numpy()
    np.testing.assert_allclose(ours(X.numpy()), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", range(24))
def test_a_pair_of_the_day(tmp_path: Path, number: int) -> None:
    (_, writer), (_, use) = random.Random(SEED).sample(EVERY, 24)[number]
    _check(tmp_path, writer, use)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "writer", [*WRITERS.values(), *LAYERS.values(), *CLASSES.values(), *METHODS.values()]
)
def test_every_pair(tmp_path: Path, writer: str) -> None:
    for number, ((_, one), (_, use)) in enumerate(EVERY):
        if one == writer:
            _check(tmp_path / str(number), writer, use)
