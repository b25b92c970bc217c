"""Functions of another file that ask what class a layer has, or read its parameters: refused, or with torch's answer.

Each question is asked of each kind of layer. A few are drawn by the day, or by PROGRAMS_SEED; all are tried in the sweep.
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

MODULES = {
    "Linear": "nn.Linear(4, 4)",
    "Conv1d": "nn.Conv1d(4, 4, 1)",
    "Embedding": "nn.Embedding(4, 4)",
    "BatchNorm1d": "nn.BatchNorm1d(4)",
    "LayerNorm": "nn.LayerNorm((4, 4))",
    "GRU": "nn.GRU(4, 4)",
    "GRUCell": "nn.GRUCell(4, 4)",
    "MultiheadAttention": "nn.MultiheadAttention(4, 2)",
    "Dropout": "nn.Dropout(0.3)",
    "PReLU": "nn.PReLU()",
    "ReLU": "nn.ReLU()",
    "LeakyReLU": "nn.LeakyReLU(0.2)",
    "GELU": "nn.GELU()",
    "Softmax": "nn.Softmax(-1)",
    "MaxPool2d": "nn.MaxPool2d(2)",
    "AdaptiveAvgPool2d": "nn.AdaptiveAvgPool2d(1)",
    "Upsample": "nn.Upsample(scale_factor=2)",
    "ZeroPad2d": "nn.ZeroPad2d(1)",
    "PixelShuffle": "nn.PixelShuffle(2)",
    "Flatten": "nn.Flatten()",
    "Identity": "nn.Identity()",
    "MSELoss": "nn.MSELoss()",
    "Sequential": "nn.Sequential(nn.Linear(4, 4), nn.Tanh())",
    "ModuleList": "nn.ModuleList([nn.Linear(4, 4)])",
}
DERIVED = {
    "Linear": "DerivedLinear(4, 4)",
    "Conv1d": "DerivedConv(4, 4, 1)",
    "LayerNorm": "DerivedNorm(4)",
    "Sequential": "DerivedList(nn.Linear(4, 4))",
    "ReLU": "DerivedReLU()",
    "GRU": "DerivedGRU(4, 4)",
}
OWN = """class DerivedLinear(nn.Linear):
    pass


class DerivedConv(nn.Conv1d):
    pass


class DerivedNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x) * 2


class DerivedList(nn.Sequential):
    pass


class DerivedReLU(nn.ReLU):
    pass


class DerivedGRU(nn.GRU):
    pass
"""
LAYERS = [*MODULES.items(), *DERIVED.items()]
OTHERS = ("Conv2d", "SiLU")
"""Classes that are asked for beside the layer's own."""
TESTS = """
isinstance(m, nn.C)
isinstance(m, (nn.C, nn.D))
isinstance(m, nn.C | nn.D)
not isinstance(m, nn.C)
isinstance(m, KINDS)
isinstance(m, tuple([*KINDS]))
any(isinstance(m, t) for t in (nn.C, nn.D))
any(isinstance(m, t) for t in KINDS)
next((True for t, s in ((nn.C, 2), (nn.D, 3)) if isinstance(m, t)), False)
issubclass(type(m), nn.C)
type(m) is nn.C
type(m) == nn.C
nn.C is type(m)
m.__class__ is not nn.C
type(m) in (nn.C, nn.D)
type(m) in KINDS
type(m) in {nn.C: 1}
{nn.C: True}.get(type(m), False)
type(m).__mro__[0] is nn.C
nn.C in type(m).mro()[1:]
type(m) is type(OTHER)
isinstance(m, type(OTHER))
type(m).__name__ == "C"
m.__class__.__name__.find("C") != -1
m.__class__.__qualname__ == "C"
"C" in type(m).__name__
m._get_name() == "C"
"C" in str(type(m))
"C" in f"{type(m)}"
repr(m).startswith("C")
m.__module__.startswith("torch")
hasattr(m, "weight")
hasattr(m, "bias")
hasattr(m, "forward")
hasattr(m, "reset_parameters")
hasattr(m, "inplace")
hasattr(m, "p")
hasattr(m, "kernel_size")
getattr(m, "p", 0.0) > 0
getattr(m, "bias", None) is not None
callable(getattr(m, "forward", None))
len(list(m.children())) == 0
len(list(m.modules())) > 1
""".strip().splitlines()
BLOCKS = {
    "noted": "t = type(m)\n    if t is nn.C:\n        return x * 2\n    elif t in [nn.D, nn.Tanh]:\n        return x * 3\n    return x",
    "noted attribute": "cls = m.__class__\n    if cls in (nn.C, nn.D):\n        return x * 2\n    return x",
    "noted name": 'name = m.__class__.__name__\n    return x * 2 if name.find("C") != -1 else x',
    "noted text": 'name = str(type(m))\n    return x * 2 if "C" in name else x',
    "a table by names": 'return x * {"C": 2, "D": 3}.get(type(m).__name__, 1)',
    "a loop": "for t in KINDS:\n        if isinstance(m, t):\n            return x * 2\n    return x",
    "a match": "match m:\n        case nn.C():\n            return x * 2\n        case _:\n            return x",
}
QUESTIONS = [f"return x * 2 if {test} else x" for test in TESTS] + [*BLOCKS.values()]
READING = [
    "return torch.cat([m.weight, m.bias[:, None]], 1)",
    "w, b = m.weight, m.bias\n    return torch.addmm(b, x, w.t())",
    "return (m.weight if k else m.bias).sum()",
    "return x * (m.weight > 0).float().mean()",
    "return m.weight.data[0] * x",
    "w = m.weight.data\n    return x * w.sum()",
    "return copy.deepcopy(m)(x)",
    "n = copy.deepcopy(m)\n    n.eval()\n    return n(x) * 2",
]
FUNCTIONS = """import copy
import torch
from torch import nn
from .own import DerivedLinear

KINDS = (nn.C, nn.D)
OTHER = nn.D(*ARGS)


def f(m, x, k=True):
    BODY
"""
NET = """import torch
from torch import nn
from .fns import f
from .own import *


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = LAYER
        self.out = nn.Linear(4, 4)

    def forward(self, x):
        x = self.out(x)
        return x, f(self.m, x)
"""
SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
X = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 4)).astype("float32"))
EVERY = [*itertools.product(QUESTIONS, LAYERS, OTHERS)]


def _pair(
    root: Path, body: str, layer: tuple[str, str], other: str
) -> tuple[nnx.Module, torch.nn.Module] | None:
    """Both models; None where something is told of the conversion."""
    name, made = layer
    body = body.replace("nn.C", f"nn.{name}").replace('"C"', f'"{name}"')
    text = (
        FUNCTIONS.replace("BODY", body).replace("nn.C", f"nn.{name}").replace("nn.D", f"nn.{other}")
    )
    text = text.replace("*ARGS", "2, 2, 1" if other == "Conv2d" else "").replace(
        '"D"', f'"{other}"'
    )
    if "OTHER" not in body:
        text = "".join(line for line in text.splitlines(True) if not line.startswith("OTHER"))
    if "KINDS" not in body:
        text = "".join(line for line in text.splitlines(True) if not line.startswith("KINDS"))
    own = f"from torch import nn\n\n\n{OWN}"
    found = convert(root, {"fns.py": text, "own.py": own, "net.py": NET.replace("LAYER", made)})
    if blocking(found):
        return None
    theirs = UserCode(root / "src").load(root / "src/pkg/net.py").Net().eval()
    made_here = UserCode(root / "out").load(root / "out/pkg/net.py").Net
    takes = "rngs" in inspect.signature(made_here.__init__).parameters
    ours = made_here(rngs=nnx.Rngs(0)) if takes else made_here()
    ours.eval()
    import migrator

    migrator.load_state_dict(ours, theirs.state_dict())
    return ours, theirs


def _ask(root: Path, body: str, layer: tuple[str, str], other: str) -> None:
    """Convert, and compare where nothing is told."""
    pair = _pair(root, body, layer, other)
    if pair is None:
        assert body != QUESTIONS[0] or layer[1] not in ("nn.Linear(4, 4)", DERIVED["Linear"])
        return
    ours, theirs = pair
    with torch.no_grad():
        want = theirs(X)[1].numpy()
    np.testing.assert_allclose(ours(X.numpy())[1], want, rtol=1e-4, atol=1e-5, err_msg=body)


@pytest.mark.parametrize("number", range(24))
def test_a_question_of_the_day(tmp_path: Path, number: int) -> None:
    _ask(tmp_path, *random.Random(SEED).sample(EVERY, 24)[number])


@pytest.mark.sweep
@pytest.mark.parametrize("body", QUESTIONS)
def test_every_question(tmp_path: Path, body: str) -> None:
    for number, (one, layer, other) in enumerate(EVERY):
        if one == body:
            _ask(tmp_path / str(number), body, layer, other)


@pytest.mark.parametrize("body", READING)
@pytest.mark.parametrize("layer", ["nn.Linear(4, 4)", "DerivedLinear(4, 4)"])
def test_parameters_read_elsewhere(tmp_path: Path, body: str, layer: str) -> None:
    """Values, and the gradients of the parameters: a copy, and what is read by ``.data``, leaves none."""
    pair = _pair(tmp_path, body, ("Linear", layer), "Conv2d")
    assert pair is not None
    ours, theirs = pair
    want = theirs(X)[1]
    np.testing.assert_allclose(ours(X.numpy())[1], want.detach().numpy(), rtol=1e-4, atol=1e-5)
    want.pow(2).sum().backward()
    found = nnx.grad(lambda net: (net(X.numpy())[1] ** 2).sum())(ours)
    kernel = theirs.m.weight.grad
    wanted = np.zeros((4, 4)) if kernel is None else kernel.numpy()
    np.testing.assert_allclose(found.m.kernel.T, wanted, rtol=1e-4, atol=1e-4)


def test_a_class_is_told_from_those_of_this_file_and_of_others(tmp_path: Path) -> None:
    """``type(m) is nn.Linear`` where both derive from it."""
    fns = "from torch import nn\nfrom .own import DerivedLinear as Other\n\n\nclass Here(nn.Linear):\n    pass\n\n\n"
    fns += "def f(m):\n    return type(m) is nn.Linear\n"
    net = "from torch import nn\nfrom .fns import Here, Other, f\n\n\ndef ask():\n"
    net += "    return [f(one(2, 2)) for one in (nn.Linear, Here, Other)]\n"
    own = f"from torch import nn\n\n\n{OWN}"
    found = convert(tmp_path, {"fns.py": fns, "own.py": own, "net.py": net})
    assert not blocking(found)
    assert UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").ask() == [
        True,
        False,
        False,
    ]
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    assert ours.ask(rngs=nnx.Rngs(0)) == [True, False, False]
