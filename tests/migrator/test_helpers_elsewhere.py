"""What functions and objects of another file do to a module that is run: torch's results, gradients and state."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.convert.tools import REFUSED_BY_TORCH
from tests.migrator.test_packages import convert

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n\n"
MAIN = """class M{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.o = Obj{number}()
        self.register_buffer("b", torch.ones(4))

    def forward(self, x):
        {use}
        return self.fc(x) + self.b


"""
OBJ = "class Obj{number}:\n    pass\n\n\n"
FUNCTION = OBJ + "{head}def up{number}({params}):\n{lines}\n\n"
NO_GRAD = "@torch.no_grad()\n"
LAYER, WEIGHT, BUFFER = (
    "up{number}(self.fc, x)",
    "up{number}(self.fc.weight, x)",
    "up{number}(self.b, x)",
)
FUNCTIONS = [
    ("m, x", "with torch.no_grad(): m.weight.mul_(0.5)", "", LAYER),
    ("m, x", "m.weight.data.mul_(0.5)", "", LAYER),
    ("m, x", "m.weight.data = m.weight.data * 0.5", "", LAYER),
    ("m, x", "m.bias.data += 1", "", LAYER),
    ("m, x", "m.weight.copy_(F.normalize(m.weight, dim=1))", NO_GRAD, LAYER),
    (
        "m, x",
        "w = m.weight.data.clone(); w = F.normalize(w, dim=1); m.weight.copy_(w)",
        NO_GRAD,
        LAYER,
    ),
    ("m, x", "nn.init.constant_(m.weight, 0.5)", "", LAYER),
    ("m, x", "nn.init.zeros_(m.bias)", "", LAYER),
    ("w, x", "w.data.mul_(0.5)", "", WEIGHT),
    ("w, x", "w.mul_(0.5)", NO_GRAD, WEIGHT),
    ("w, x", "w.copy_(F.normalize(w, dim=1))", NO_GRAD, WEIGHT),
    ("b, x", "b.lerp_(x.mean(0), 0.1)", NO_GRAD, BUFFER),
    ("b, x", "b += x.mean(0)", NO_GRAD, BUFFER),
    ("b, x", "b.copy_(x[0])", NO_GRAD, BUFFER),
    ("m, x", "m.b.mul_(0.9).add_(x.mean(0), alpha=0.1)", NO_GRAD, "up{number}(self, x)"),
    ("m, x", "m.b = m.b * 0.9 + x.mean(0).detach() * 0.1", "", "up{number}(self, x)"),
    ("o, x", "o.kept = x; o.kept += 1", "", "x = x * 1\n        up{number}(self.o, x)"),
    ("o, x", "o.kept = x; y = o.kept; y += 1", "", "x = x * 1\n        up{number}(self.o, x)"),
    ("o, x", "o.values = x; y = o.values; y += 1", "", "x = x * 1\n        up{number}(self.o, x)"),
    ("o, x", "o.count = x.shape[0]; o.count += 1", "", "x = x * 1\n        up{number}(self.o, x)"),
]
CLASS = "class Obj{number}:\n    def put(self, x):\n        {put}\n\n    def up(self):\n        {up}\n\n\n"
CLASSES = [
    ("self.kept = x", "self.kept += 1"),
    ("self.kept = x[0]", "self.kept += 1"),
    ("self.kept = x", "self.kept.add_(1)"),
    ("self.kept = x.clone()", "self.kept += 1"),
    ("self.kept = x", "self.kept = self.kept + 1"),
]
PUT = "x = x * 1\n        self.o.put(x)\n        self.o.up()"
PROGRAMS = [
    (FUNCTION.replace("{head}", head).replace("{params}", params), lines, use)
    for params, lines, head, use in FUNCTIONS
] + [(CLASS.replace("{put}", put).replace("{up}", up), "", PUT) for put, up in CLASSES]
"""Definitions of the other file, the lines of its function, and what the forward pass does first."""


def _gradients(model: torch.nn.Module, port: nnx.Module, weight: np.ndarray) -> None:
    """Check that both give the same, with the same gradients for the parameters, and hold the same behind it."""
    want = model(X.clone())
    model.zero_grad()
    (want * torch.tensor(weight)).sum().backward()
    before = nnx.clone(port)
    got = port(jnp.asarray(X.numpy()))
    np.testing.assert_allclose(got, want.detach(), rtol=1e-4, atol=1e-5)
    found = nnx.grad(lambda m: (m(jnp.asarray(X.numpy())) * weight).sum())(before)
    slopes = migrator.to_state_dict(found, like=port)
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(slopes[name], parameter.grad, rtol=1e-4, atol=1e-5)
    kept = migrator.to_state_dict(port)
    for name, value in model.state_dict().items():
        np.testing.assert_allclose(kept[name], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("apart", [False, True])
def test_what_helpers_do_to_a_module_that_is_run(tmp_path: Path, apart: bool) -> None:
    lib, net, places = HEAD, HEAD + ("from .lib import *\n\n\n" if apart else ""), []
    for number, (definition, lines, use) in enumerate(PROGRAMS):
        body = "".join(f"    {one.strip()}\n" for one in lines.split(";"))
        made = definition.replace("{lines}", body.rstrip("\n")).replace("{number}", str(number))
        first = lib.count("\n"), net.count("\n")
        lib, net = (lib + made, net) if apart else (lib, net + made)
        net += MAIN.format(number=number, use=use.format(number=number))
        places.append((first, (lib.count("\n"), net.count("\n"))))
    result = convert(tmp_path, {"lib.py": lib, "net.py": net}, "flaxed")
    names = ["lib.py", "net.py"]
    told = [(names.index(Path(f.path).name), f.line) for f in result.findings if f.blocks]
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py")
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py")
    converted = []
    for number, (first, last) in enumerate(places):
        if any(first[file] < line <= last[file] for file, line in told):
            continue
        torch.manual_seed(number)
        model = getattr(theirs, f"M{number}")()
        begin = {name: value.clone() for name, value in model.state_dict().items()}
        try:
            model(X.clone())
        except REFUSED_BY_TORCH:
            continue
        model.load_state_dict(begin)
        port = getattr(ours, f"M{number}")(rngs=nnx.Rngs(0))
        migrator.load_state_dict(port, begin)
        _gradients(model, port, np.linspace(0.5, 1.5, 12, dtype=np.float32).reshape(3, 4))
        converted.append(number)
    assert {0, 1, 2, 4, 5, 6, 7, 15} <= set(converted), "these are plain"
