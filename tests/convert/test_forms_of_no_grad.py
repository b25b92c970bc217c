"""Ways to switch gradients off, and what is written there: outputs, gradients and state are torch's, or it is refused.

A block, a decorator, a function that is only called from within one; a few programs are drawn by the day, or by
PROGRAMS_SEED, all of them in the sweep.
"""

from __future__ import annotations

import datetime
import itertools
import os
import random
import re
import textwrap
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.convert import convert_source
from tests.convert.tools import REFUSED_BY_TORCH, ported, rules_of
from tests.migrator.test_packages import blocking
from tests.migrator.test_packages import convert as convert_package

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
FORMS = {
    "with": ("", "", "with torch.no_grad():\n    BODY", "self"),
    "inference": ("", "", "with torch.inference_mode():\n    BODY", "self"),
    "method": ("", "@torch.no_grad()\ndef m(self, x, y):\n    BODY\n", "self.m(x, y)", "self"),
    "method with": (
        "",
        "def m(self, x, y):\n    with torch.no_grad():\n        BODY\n",
        "self.m(x, y)",
        "self",
    ),
    "function": ("@torch.no_grad()\ndef m(mod, x, y):\n    BODY\n", "", "m(self, x, y)", "mod"),
    "function with": (
        "def m(mod, x, y):\n    with torch.no_grad():\n        BODY\n",
        "",
        "m(self, x, y)",
        "mod",
    ),
    "method returns": (
        "",
        "@torch.inference_mode()\ndef m(self, x, y):\n    BODY\n    return y\n",
        "y = self.m(x, y)",
        "self",
    ),
    "function returns": (
        "@torch.no_grad()\ndef m(mod, x, y):\n    BODY\n    return y\n",
        "",
        "y = m(self, x, y)",
        "mod",
    ),
    "called within": (
        "",
        "def m(self, x, y):\n    BODY\n",
        "with torch.no_grad():\n    self.m(x, y)",
        "self",
    ),
    "function within": (
        "def m(mod, x, y):\n    BODY\n",
        "",
        "with torch.no_grad():\n    m(self, x, y)",
        "mod",
    ),
    "through another": (
        "",
        "def m(self, x, y):\n    BODY\n\n@torch.no_grad()\ndef n(self, x, y):\n    self.m(x, y)\n",
        "self.n(x, y)",
        "self",
    ),
    "set": ("", "", "with torch.set_grad_enabled(False):\n    BODY", "self"),
    "inner": ("", "", "@torch.no_grad()\ndef m(x, y):\n    BODY\nm(x, y)", "self"),
}
BODIES = (
    *("S.fc.weight.mul_(0.9)", "S.fc.weight.add_(S.fd.weight)", "S.fc.weight *= 0.9"),
    *("S.fc.weight += S.fd.weight * 0.1", "S.fc.weight[0] = 0.5", "S.fc.weight[0] *= 2"),
    *("S.fc.weight[:, 0].zero_()", "S.fc.weight[0] = S.w", "S.fc.weight.copy_(S.fd.weight * 2)"),
    *("S.fc.weight.data = S.fc.weight.data * 0.9", "S.fc.weight.data.mul_(0.9)"),
    *("nn.init.zeros_(S.fc.bias)", "nn.init.constant_(S.w, 0.3)", "S.w.clamp_(-0.1, 0.1)"),
    *("S.w.div_(S.w.norm())", "S.w /= S.w.norm()", "for p in S.fc.parameters():\n    p.mul_(0.9)"),
    "for p in S.fc.parameters():\n    p.data.clamp_(-0.1, 0.1)",
    "for p, q in zip(S.fc.parameters(), S.fd.parameters()):\n    p.mul_(0.9).add_(q, alpha=0.1)",
    "for p, q in zip(S.fc.parameters(), S.fd.parameters()):\n    p.copy_(p * 0.9 + q * 0.1)",
    *("S.buf.copy_(x.mean(0))", "S.buf = x.mean(0)", "S.buf += S.w", "S.buf.mul_(0.5).add_(S.w)"),
    *("S.buf[0] = S.w[0]", "S.buf = S.buf * 0.9 + S.w * 0.1", "y.mul_(2)", "y += S.w", "y[0] = 1"),
    *("y[:, 0] = S.w[0]", "y = y * 2", "y = y + S.w", "y = S.w", "y = y.clamp(0)", "y.clamp_(0)"),
    *("w = S.w\nw.mul_(0.9)", "w = S.w.data\nw.mul_(0.9)", "y = S.fc(y)"),
    *(
        "y = torch.where(y > 0, y, S.w)",
        "y.copy_(S.fd(x))",
        "y.data.mul_(2)",
        "k = S.buf\nk += S.w",
    ),
    *('getattr(S, "w").mul_(0.9)', "S.lst[0].mul_(0.9)", "S.lst[0].copy_(S.w)"),
    *('S.dct["a"].mul_(0.9)', "torch.mul(S.w, 0.9, out=S.w)", "S.w.lerp_(S.fd.bias, 0.1)"),
    *("S.w.sub_(0.1 * S.w.sign())", "S.w.masked_fill_(S.w > 0, 0.2)", "S.fc.weight.t().mul_(0.9)"),
)
EVERY = list(itertools.product(FORMS, BODIES))
SOURCE = """\
import torch
import torch.nn as nn
import torch.nn.functional as F


TOP
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.fd = nn.Linear(3, 3)
        self.w = nn.Parameter(torch.tensor([0.5, -0.3, 0.7]))
        self.lst = nn.ParameterList([nn.Parameter(torch.ones(3))])
        self.dct = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})
        self.register_buffer("buf", torch.ones(3))
        self.last = 0

METHODS
    def forward(self, x):
        y = self.fd(x) * 1
CALL
        z = y * 1 + self.fd(x) * self.w + self.buf + self.fc(x) * self.lst[0] * self.dct["a"]
        return z + self.last
"""
X = np.linspace(-1, 1.5, 12, dtype=np.float32).reshape(4, 3)


def program(form: str, body: str) -> str:
    """The module that writes something in a way to switch gradients off."""
    top, methods, call, own = FORMS[form]
    lines = re.sub(r"\bS\b", own, body).split("\n")
    source = SOURCE
    for word, text, indent in (("TOP", top, 0), ("METHODS", methods, 4), ("CALL", call, 8)):
        made = []
        for line in text.split("\n"):
            pad = " " * (len(line) - len(line.lstrip()))
            made += [pad + one for one in lines] if line.strip() == "BODY" else [line]
        part = textwrap.indent("\n".join(made), " " * indent)
        source = source.replace(word, f"{part}\n\n" if word == "TOP" and text else part)
    return source


def compare(source: str) -> str:
    """ "equal", "refused", or "" for what torch itself refuses; anything else is an error."""
    theirs: dict = {}
    torch.manual_seed(0)
    exec(source, theirs)
    module = theirs["M"]()
    start = {name: value.detach().clone() for name, value in module.state_dict().items()}
    try:
        x = torch.tensor(X, requires_grad=True)
        out = module(x)
        weights = torch.arange(1.0, 1 + out.numel()).view(out.shape)
        (out * weights).sum().backward()
        again = module(torch.tensor(X)).detach().numpy()
    except REFUSED_BY_TORCH:
        return ""
    made = ported(source)
    if made is None:
        return "refused"
    ours, code = made
    port = ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, start)

    def loss(port, x):
        got = port(x)
        return (got * weights.numpy()).sum(), got

    (_, got), (slopes, slope) = nnx.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
        port, jnp.asarray(X)
    )
    close = {"rtol": 1e-4, "atol": 1e-4, "err_msg": code}
    np.testing.assert_allclose(got, out.detach(), **close)
    np.testing.assert_allclose(slope, x.grad, **close)
    np.testing.assert_allclose(port(jnp.asarray(X)), again, **close)
    end = migrator.to_state_dict(port)
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(end[name], value, **close)
    nnx.update(port, slopes)
    of = migrator.to_state_dict(port)
    for name, value in module.named_parameters():
        expected = np.zeros(value.shape) if value.grad is None else value.grad.numpy()
        np.testing.assert_allclose(of[name], expected, **close)
    return "equal"


@pytest.mark.parametrize("number", range(24))
def test_writes_without_gradients(number: int) -> None:
    compare(program(*random.Random(SEED).sample(EVERY, 24)[number]))


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS)
def test_all_writes_without_gradients(form: str) -> None:
    for body in BODIES:
        compare(program(form, body))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "body", ["S.fc.weight.mul_(0.9)", "S.w.div_(S.w.norm())", "S.fc.weight[0] = 0.5"]
)
def test_a_parameter_keeps_its_own_gradient(form: str, body: str) -> None:
    assert compare(program(form, body)) == "equal"


def test_a_function_that_is_called_with_gradients_and_without() -> None:
    source = program("called within", "S.w.mul_(0.9)")
    line = "        with torch.no_grad():\n"
    assert rules_of(
        source.replace(line, f"        if self.last:\n            self.m(x, y)\n{line}")
    ) == ["MUT002"]
    assert rules_of(source) == []


def test_functions_that_nothing_differentiates_are_plain() -> None:
    """An exponential moving average that is updated beside the model."""
    source = """
    import torch

    @torch.no_grad()
    def update(model: nn.Module, ema: nn.Module):
        for p, q in zip(model.parameters(), ema.parameters()):
            q.mul_(0.9).add_(p, alpha=0.1)
    """
    code = convert_source("import torch.nn as nn\n" + textwrap.dedent(source)).code
    assert "with_data" not in code


def test_a_function_that_another_file_may_call_with_gradients(tmp_path: Path) -> None:
    """What is seen of its calls is not all: `y` is scaled with its gradient there."""
    scale = "def scale(y: torch.Tensor):\n    y = y * 1\n    y.mul_(2)\n    return y\n"
    body = "    def forward(self, x):\n        with torch.no_grad():\n            z = scale(x)\n        return x + z\n"
    head = "import torch\nfrom torch import nn\n\n\n"
    files = {
        "first.py": f"{head}{scale}\n\nclass A(nn.Module):\n{body}",
        "second.py": f"{head}from .first import scale\n\n\nclass B(nn.Module):\n"
        "    def forward(self, x):\n        return scale(x)\n",
    }
    result = convert_package(tmp_path, files)
    assert blocking(result) == []
    first = next(one.code for one in result.files if one.file.path.name == "first.py")
    assert "with_data" not in first
