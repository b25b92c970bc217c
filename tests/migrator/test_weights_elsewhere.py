"""The weight of a layer of which nothing is known, by the way that a function comes to the layer: refused, or torch's.

A few are drawn by the day, or by PROGRAMS_SEED; all of them are tried in the sweep.
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

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

LAYERS = {
    "Linear": "nn.Linear(4, 4)",
    "LayerNorm": "nn.LayerNorm(4)",
    "BatchNorm1d": "nn.BatchNorm1d(4)",
    "Embedding": "nn.Embedding(4, 4)",
    "Tanh": "nn.Tanh()",
    "derived": "Derived(4, 4)",
}
READS = [
    "x * (2 if hasattr(m, 'weight') else 3)",
    "x * (2 if getattr(m, 'weight', None) is not None else 3)",
    "x + getattr(m, 'weight', torch.zeros(1)).sum()",
    "x * (w.sum() if (w := getattr(m, 'weight', None)) is not None else 3)",
    "x + (getattr(m, 'weight', None).sum() if hasattr(m, 'weight') else 0)",
    "x * getattr(m, 'weight', torch.ones(2)).shape[0]",
    "x + (m.weight.sum() if hasattr(m, 'weight') else 0)",
    "x + (m.weight.data.abs().mean() if hasattr(m, 'weight') else 0)",
    "x * (m.weight.numel() if hasattr(m, 'weight') else 1)",
    "x + (F.linear(x, m.weight) if isinstance(m, nn.Linear) else 0)",
    "x * (2 if hasattr(m, 'weight') and m.weight.requires_grad else 3)",
    "x * (2 if hasattr(m, 'weight') and isinstance(m.weight, nn.Parameter) else 3)",
    "x * (2 if getattr(m, 'bias', None) is not None else 3)",
    "x * len([s for s in [m] if hasattr(s, 'weight')])",
]
WAYS = {
    "an argument": (
        "def f(ms, x):\n    return g(ms[0], x)\n\n\ndef g(m, x):\n    return READ",
        "f(self.ms, x)",
    ),
    "a loop": ("def f(ms, x):\n    for m in ms:\n        x = READ\n    return x", "f(self.ms, x)"),
    "a zip": (
        "def f(ms, x):\n    for m, k in zip(ms, (2, 3)):\n        x = (READ) * k\n    return x",
        "f(self.ms, x)",
    ),
    "an attribute": ("def f(net, x):\n    m = net.m\n    return READ", "f(self, x)"),
    "a loop over one": (
        "def f(net, x):\n    for m in net.ms:\n        x = READ\n    return x",
        "f(self, x)",
    ),
    "its place": ("def f(ms, x):\n    m = ms[0]\n    return READ", "f(self.ms, x)"),
    "a comprehension": ("def f(ms, x):\n    return sum([READ for m in ms])", "f(self.ms, x)"),
    "a lambda": (
        "g = lambda m, x: READ\n\n\ndef f(ms, x):\n    return g(ms[0], x)",
        "f(self.ms, x)",
    ),
    "a map": ("def f(ms, x):\n    return sum(map(lambda m: READ, ms))", "f(self.ms, x)"),
    "a function": (
        "def f(ms, x):\n    def go(m):\n        return READ\n    return go(ms[0])",
        "f(self.ms, x)",
    ),
    "children": (
        "def f(net, x):\n    for m in net.ms.children():\n        x = READ\n    return x",
        "f(self, x)",
    ),
    "a base": (
        "class f(nn.Module):\n    def go(self, x):\n        m = self.m\n        return READ",
        "self.go(x)",
    ),
    "a base's loop": (
        "class f(nn.Module):\n    def go(self, x):\n        for m in self.ms:\n            x = READ\n        return x",
        "self.go(x)",
    ),
    "a method": (
        "class f(nn.Module):\n    def go(self, m, x):\n        return READ",
        "self.go(self.m, x)",
    ),
}
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
OWN = f"{HEAD}\n\nclass Derived(nn.Linear):\n    pass\n"
NET = f"""{HEAD}from .fns import f
from .own import Derived


class Net(BASE):
    def __init__(self):
        super().__init__()
        self.ms = nn.ModuleList([LAYER])
        self.m = self.ms[0]
        self.out = nn.Linear(4, 4)

    def forward(self, x):
        x = self.out(x)
        return USE
"""
EVERY = [*itertools.product(LAYERS, READS, WAYS)]
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
X = torch.linspace(-1, 2, 16).reshape(4, 4)


def _check(root: Path, layer: str, read: str, way: str) -> None:
    """Convert, and compare where nothing is told."""
    code, use = WAYS[way]
    net = NET.replace("LAYER", LAYERS[layer]).replace("USE", use)
    net = net.replace("BASE", "f" if code.startswith("class") else "nn.Module")
    fns = f"{HEAD}\n\n{code.replace('READ', read)}\n"
    found = convert(root, {"fns.py": fns, "own.py": OWN, "net.py": net})
    if blocking(found):
        assert (read, way) not in [(READS[0], "a loop"), (READS[2], "a loop")]
        return
    torch.manual_seed(0)
    theirs = UserCode(root / "src").load(root / "src/pkg/net.py").Net().eval()
    made = UserCode(root / "out").load(root / "out/pkg/net.py").Net
    takes = "rngs" in inspect.signature(made.__init__).parameters
    ours = made(rngs=nnx.Rngs(0)) if takes else made()
    ours.eval()
    migrator.load_state_dict(ours, theirs.state_dict())
    with torch.no_grad():
        want = theirs(X).numpy()
    np.testing.assert_allclose(ours(X.numpy()), want, rtol=1e-4, atol=1e-5, err_msg=read)


@pytest.mark.parametrize("number", range(16))
def test_a_weight_of_the_day(tmp_path: Path, number: int) -> None:
    _check(tmp_path, *random.Random(SEED).sample(EVERY, 16)[number])


@pytest.mark.parametrize("read", [READS[0], READS[2], READS[3]])
def test_a_weight_that_may_not_be_there(tmp_path: Path, read: str) -> None:
    _check(tmp_path, "Linear", read, "a loop")


@pytest.mark.sweep
@pytest.mark.parametrize("read", READS)
def test_every_weight(tmp_path: Path, read: str) -> None:
    for number, (layer, one, way) in enumerate(EVERY):
        if one == read:
            _check(tmp_path / str(number), layer, read, way)
