"""Containers of layers that one file makes and another goes over: the layers come in torch's order, under jit too.

Each container is gone over in each way, by whatever comes to it; it is refused or equal. A few are drawn by the day, or by
PROGRAMS_SEED; all of them are tried in the sweep.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import os
import random
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert

CONTAINERS = {
    "ModuleDict": 'nn.ModuleDict({"z": nn.Linear(4, 4), "a": nn.Tanh(), "m": nn.Linear(4, 4)})',
    "ModuleList": "nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4)])",
    "Sequential": "nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))",
    "named": 'nn.Sequential(OrderedDict([("z", nn.Linear(4, 4)), ("a", nn.Tanh())]))',
    "derived": "Derived(nn.Linear(4, 4), nn.Tanh())",
}
OF_DICTS = {
    "values": "for m in C.values():\n    x = m(x)\nreturn x",
    "items": "for i, (k, m) in enumerate(C.items()):\n    x = m(x) * i\nreturn x",
    "keys": "for k in C.keys():\n    x = C[k](x)\nreturn x",
    "itself": "for k in C:\n    x = C[k](x)\nreturn x",
    "a list of it": "for k in list(C):\n    x = C[k](x)\nreturn x",
    "another name": "ms = C\nfor k in ms:\n    x = ms[k](x)\nreturn x",
    "a comprehension": "for m in [C[k] for k in C]:\n    x = m(x)\nreturn x",
    "first": "return next(iter(C.values()))(x)",
    "reduced": "return functools.reduce(lambda t, m: m(t), C.values(), x)",
    "one entry": 'return C["z"](x) + C["m"](x)',
}
OF_LISTS = {
    "itself": "for m in C:\n    x = m(x)\nreturn x",
    "another name": "ms = C\nfor m in ms:\n    x = m(x)\nreturn x",
    "two names": "ms, n = C, 2\nfor m in ms:\n    x = m(x) * n\nreturn x",
    "counted": "for i, m in enumerate(C):\n    x = m(x) * i\nreturn x * len(C)",
    "zipped": "for m, k in zip(C, (1.0, 2.0)):\n    x = m(x) * k\nreturn x",
    "by its place": "return C[0](x) + C[-1](x)",
    "a part": "for m in C[1:]:\n    x = m(x)\nreturn x",
    "from behind": "for m in reversed(C):\n    x = m(x)\nreturn x",
    "reduced": "return functools.reduce(lambda t, m: m(t), C, x)",
    "chained": "for m in itertools.chain(C, [torch.tanh]):\n    x = m(x)\nreturn x",
    "without the first": "for m in itertools.islice(C, 1, None):\n    x = m(x)\nreturn x",
    "a comprehension": "return torch.stack([m(x) for m in C]).sum(0)",
    "spread": "first, *rest = C\nfor m in rest:\n    x = m(x)\nreturn first(x)",
    "as a whole": "return C(x)",
}
WAYS = {
    "a base goes over": (
        "class Base(nn.Module):\n    def run(self, x):\n        BODY",
        "Base",
        "CONTAINER",
        "self.ms",
        "self.run(x)",
    ),
    "a mixin goes over": (
        "class Mixed:\n    def run(self, x):\n        BODY",
        "Mixed, nn.Module",
        "CONTAINER",
        "self.ms",
        "self.run(x)",
    ),
    "a function is handed it": (
        "def run(ms, x):\n    BODY",
        "nn.Module",
        "CONTAINER",
        "ms",
        "run(self.ms, x)",
    ),
    "a function is handed the model": (
        "def run(net, x):\n    BODY",
        "nn.Module",
        "CONTAINER",
        "net.ms",
        "run(self, x)",
    ),
    "another module keeps it": (
        "class Run(nn.Module):\n    def __init__(self, ms):\n        super().__init__()\n        self.ms = ms\n\n"
        "    def forward(self, x):\n        BODY",
        "nn.Module",
        "Run(CONTAINER)",
        "self.ms",
        "self.ms(x)",
    ),
    "another module is handed it": (
        "class Run(nn.Module):\n    def forward(self, ms, x):\n        BODY",
        "nn.Module",
        "CONTAINER; self.run = Run()",
        "ms",
        "self.run(self.ms, x)",
    ),
}
MADE_THERE = {
    "its base makes it": (
        "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.ms = CONTAINER",
        "Base",
        "pass",
        "self.ms",
    ),
    "its part makes it": (
        "class Part(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.ms = CONTAINER",
        "nn.Module",
        "self.part = Part()",
        "self.part.ms",
    ),
    "a function makes it": (
        "def make():\n    return CONTAINER",
        "nn.Module",
        "self.ms = make()",
        "self.ms",
    ),
}
HEAD = "import functools\nimport itertools\nfrom collections import OrderedDict\n\nimport torch\nfrom torch import nn\n"
DERIVED = "\n\nclass Derived(nn.Sequential):\n    pass\n"
NET = """

class Net(BASE):
    def __init__(self):
        super().__init__()
        INIT

    def forward(self, x):
        BODY
"""


def _lines(text: str, columns: int) -> str:
    return text.replace("\n", "\n" + " " * columns)


def _package(container: str, body: str, way: str) -> dict[str, str]:
    made = CONTAINERS[container]
    own = DERIVED if container == "derived" else ""
    if way in WAYS:
        there, base, init, name, call = WAYS[way]
        columns = there.rpartition("\n")[2].index("BODY")
        there = there.replace("BODY", _lines(body.replace("C", name), columns))
        net = NET.replace("INIT", f"self.ms = {init}".replace("; ", "\n        "))
        net = net.replace("BODY", f"return {call}")
        here = own + net.replace("CONTAINER", made)
    else:
        there, base, init, name = MADE_THERE[way]
        there = own + "\n\n" + there.replace("CONTAINER", made)
        here = NET.replace("INIT", init).replace("BODY", _lines(body.replace("C", name), 8))
    asked = [
        one
        for one in ("Base", "Mixed", "Run", "Part", "make", "run")
        if f" {one}(" in there or f" {one}:" in there
    ]
    found = [one for one in asked if f"class {one}" in there or f"def {one}(" in there]
    found = [one for one in found if one != "run" or "class" not in there]
    imported = f"from .fns import {', '.join(found)}\n"
    return {
        "fns.py": f"{HEAD}\n\n{there}\n",
        "net.py": HEAD + imported + here.replace("BASE", base),
    }


EVERY = [
    *itertools.product(["ModuleDict"], OF_DICTS, [*WAYS, *MADE_THERE]),
    *itertools.product(
        [c for c in CONTAINERS if c != "ModuleDict"], OF_LISTS, [*WAYS, *MADE_THERE]
    ),
]
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
X = torch.linspace(-1, 2, 16).reshape(4, 4)


def _check(root: Path, container: str, body: str, way: str) -> None:
    """Convert, and compare values and gradients where nothing is told."""
    if container == "ModuleList" and body == "as a whole":
        return  # which cannot be called
    form = OF_DICTS[body] if container == "ModuleDict" else OF_LISTS[body]
    found = convert(root, _package(container, form, way))
    if blocking(found):
        assert (container, body) not in _PLAIN
        return
    torch.manual_seed(0)
    theirs = UserCode(root / "src").load(root / "src/pkg/net.py").Net().eval()
    made = UserCode(root / "out").load(root / "out/pkg/net.py").Net
    takes = "rngs" in inspect.signature(made.__init__).parameters
    ours = made(rngs=nnx.Rngs(0)) if takes else made()
    ours.eval()
    migrator.load_state_dict(ours, theirs.state_dict())
    leaf = X.clone().requires_grad_()
    want = theirs(leaf)
    (want**2).sum().backward()
    x = jnp.asarray(X.numpy())
    np.testing.assert_allclose(ours(x), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    jitted = nnx.jit(lambda net, x: net(x))(ours, x)
    np.testing.assert_allclose(jitted, want.detach().numpy(), rtol=1e-4, atol=1e-5)
    slope = nnx.grad(lambda net, x: (net(x) ** 2).sum(), argnums=1)(ours, x)
    np.testing.assert_allclose(slope, leaf.grad, rtol=1e-3, atol=1e-4)


_PLAIN = {("ModuleDict", "values"), ("ModuleDict", "items"), ("ModuleList", "itself")}
"""What is never refused."""


@pytest.mark.parametrize("number", range(24))
def test_a_container_of_the_day(tmp_path: Path, number: int) -> None:
    _check(tmp_path, *random.Random(SEED).sample(EVERY, 24)[number])


@pytest.mark.parametrize("way", [*WAYS, *MADE_THERE])
def test_the_order_of_a_dict(tmp_path: Path, way: str) -> None:
    _check(tmp_path, "ModuleDict", "values", way)


@pytest.mark.sweep
@pytest.mark.parametrize("way", [*WAYS, *MADE_THERE])
def test_every_container(tmp_path: Path, way: str) -> None:
    for number, (container, body, one) in enumerate(EVERY):
        if one == way:
            _check(tmp_path / str(number), container, body, way)


def test_a_dict_that_is_asked_by_name_stays_one_of_flax(tmp_path: Path) -> None:
    """Nothing goes over it in either file."""
    files = _package("ModuleDict", OF_DICTS["one entry"], "a base goes over")
    convert(tmp_path, files)
    assert "nnx.Dict(" in (tmp_path / "out/pkg/net.py").read_text()
