"""What a forward pass reaches by way of methods that are told by their names alone: weights written there keep a gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.convert.tools import HEADER, both
from tests.migrator.test_packages import blocking, convert

BASE = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        self.bound()
        return self.compute(x)

    def bound(self):
        pass
{abstract}
"""
ABSTRACT = """
    def compute(self, x):
        raise NotImplementedError
"""
DERIVED = """
class M(Base):
    def bound(self):
        with torch.no_grad():
            self.weight.clamp_(-0.5, 0.5)

    def compute(self, x):
        self.weight.data = self.weight.data.renorm(2, 1, 1e-5).mul(1e5)
        return x @ self.weight
"""
OUTER = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def norm_(self):
        self.weight.data = self.weight.data.clamp(-0.5, 0.5)

    def apply_to(self, x):
        return x @ self.weight
"""
HOLDING = """
class M(nn.Module):
    def __init__(self, part=None):
        super().__init__()
        self.part = part or Part()

    def forward(self, x):
        self.part.norm_()
        return self.part.apply_to(x)
"""


def same_slopes(theirs: torch.nn.Module, ours: Any) -> None:
    """Compare values, the state that is left, and the gradients of the weights."""
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    theirs(torch.tensor(x)).square().sum().backward()
    slopes = nnx.grad(lambda module: (module(x) ** 2).sum())(ours)
    found = migrator.to_state_dict(slopes, like=ours)
    for name, param in theirs.named_parameters():
        assert param.grad is not None
        assert param.grad.abs().sum() > 0
        np.testing.assert_allclose(found[name], param.grad.numpy(), rtol=1e-4, atol=1e-5)
    state = migrator.to_state_dict(ours)
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-5)


@pytest.mark.parametrize("abstract", ["", ABSTRACT])
def test_methods_that_derived_classes_define(abstract: str) -> None:
    model, port, _ = both(BASE.format(abstract=abstract) + DERIVED)
    same_slopes(model, port)


def test_a_method_of_what_is_not_known() -> None:
    model, port, _ = both(OUTER + HOLDING)
    same_slopes(model, port)


@pytest.mark.parametrize(
    ("first", "second", "imported"),
    [
        (BASE.format(abstract=""), DERIVED, "Base"),
        (BASE.format(abstract=ABSTRACT), DERIVED, "Base"),
        (OUTER, HOLDING, "Part"),
    ],
)
def test_across_files(tmp_path: Path, first: str, second: str, imported: str) -> None:
    files = {
        "first.py": HEADER + first,
        "net.py": HEADER + f"from .first import {imported}\n\n" + second,
    }
    assert not blocking(convert(tmp_path, files, name="flaxed"))
    torch.manual_seed(0)
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").M()
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py").M(rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    same_slopes(theirs, ours)


NAMED = """
class M(nn.Module):
    def __init__(self, kind="a"):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.kind = kind
        self.kept = self._a if kind == "a" else self._b

    @property
    def bounded(self):
        self.weight.data.clamp_(-0.5, 0.5)
        return self.weight

    def _a(self, x):
        self.weight.data = self.weight.data.clamp(-0.5, 0.5)
        return x @ self.weight

    def _b(self, x):
        return x @ self.weight

    def log_prob(self, x):
        self.bound()
        return x @ self.weight

    def bound(self):
        with torch.no_grad():
            self.weight.mul_(0.5)

    def forward(self, x):
        return {called}
"""


@pytest.mark.parametrize(
    "called",
    [
        "self.kept(x)",
        "getattr(self, '_' + self.kind)(x)",
        "x @ self.bounded",
        "getattr(self, 'log_' + 'prob')(x)",
    ],
)
def test_methods_that_no_call_names(called: str) -> None:
    model, port, _ = both(NAMED.format(called=called))
    same_slopes(model, port)


def test_a_loss_that_is_no_forward_pass() -> None:
    model, port, _ = both(NAMED.format(called="x"))
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    model.log_prob(torch.tensor(x)).square().sum().backward()
    slopes = nnx.grad(lambda module: (module.log_prob(x) ** 2).sum())(port)
    found = migrator.to_state_dict(slopes, like=port)["weight"]
    np.testing.assert_allclose(found, model.weight.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_what_only_bounds_the_weights_stays_plain() -> None:
    _, _, code = both(NAMED.format(called="x").replace("self.bound()\n        return", "return"))
    assert "        self.weight[...] = self.weight[...] * 0.5\n" in code
