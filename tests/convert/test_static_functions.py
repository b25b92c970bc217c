"""Functions of the output where torch has classes and layers: in the body of a class, and under a tensor's names."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

import migrator
from migrator import convert_source
from tests.convert.tools import both, loaded, pair, same

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class G(nn.Module):
    def __init__(self, red="mean"):
        super().__init__()
        self.red = red
        self.lin = nn.Linear(4, 4)
        self.conv1 = nn.Linear(4, 4)
    def forward(self, x):
        a = getattr(x, "mean")(-1, keepdim=True)
        b = getattr(torch, "tanh")(x)
        c = getattr(F, "gelu")(x, approximate="tanh")
        d = getattr(self, "lin")(x)
        e = getattr(self, "conv" + str(1))(x)
        g = getattr(x, "shape")[0]
        return a + b + c + d + e + g


class C1(nn.Module):
    norm_cls = nn.LayerNorm
    act_cls = nn.GELU
    fn = torch.tanh
    fn2 = F.relu6 if False else torch.sigmoid
    lam = staticmethod(lambda x: x * 2)
    act = nn.SiLU()
    pool = nn.AdaptiveAvgPool1d
    def __init__(self):
        super().__init__()
        self.norm = self.norm_cls(4)
        self.a = self.act_cls()
        self.p = self.pool(2)
    def forward(self, x):
        return self.p(self.a(self.norm(self.act(self.lam(self.fn(self.fn2(x)))))))


class C2(C1):
    norm_cls = nn.Identity
    act_cls = nn.Hardtanh
    def forward(self, x):
        return super().forward(x) + type(self).act_cls()(x).sum() + C1.norm_cls(4)(x).mean()


class C3(C1):
    norm_cls = nn.BatchNorm1d
    act_cls = nn.PReLU
"""


@pytest.mark.parametrize("name", ["G", "C1", "C2", "C3"])
def test_the_port_computes_what_torch_does(name: str) -> None:
    original, port = pair(*loaded(SOURCE)[:2], f"{name}()")
    original.eval()
    port.eval()
    same(original, port, np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))


def test_classes_are_left_alone() -> None:
    source = """
import torch.nn as nn


class Own(nn.Module):
    pass


class M(nn.Module):
    layer = Own
    kind = nn.PReLU
    kinds = {"a": nn.ReLU}
"""
    assert "staticmethod" not in convert_source(source).code


def test_a_computed_method_of_a_tensor_is_a_finding() -> None:
    source = "import torch\n\n\ndef f(x: torch.Tensor, how):\n    return getattr(x, how)(dim=1)\n"
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["API001"]


def test_a_module_that_is_a_dataclass_is_a_finding() -> None:
    source = """
from dataclasses import dataclass

import torch.nn as nn


@dataclass(eq=False)
class M(nn.Module):
    width: int = 4

    def __post_init__(self):
        super().__init__()
        self.layer = nn.Linear(self.width, self.width)

    def forward(self, x):
        return self.layer(x)
"""
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["API001"]


def test_names_that_tensors_have() -> None:
    """Without ``data`` in arrays, ``hasattr`` would leave out what it guards; the bias of a layer may be None."""
    source = """
def weights_init(m):
    if m.__class__.__name__.find("Conv") != -1 and hasattr(m, "bias") and hasattr(m.bias, "data"):
        m.bias.data.fill_(0.5)


class M(nn.Module):
    def __init__(self, scaled=False):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.plain = nn.Conv1d(4, 4, 1, bias=False)
        self.conv = nn.Conv1d(4, 4, 1)
        self.scale = nn.Parameter(torch.full((1,), 3.0)) if scaled else None
        for m in self.modules():
            if isinstance(m, nn.BatchNorm1d):
                if hasattr(m.weight, "data"):
                    m.weight.data.zero_().add_(2.0)
            elif isinstance(m, nn.Conv1d):
                if hasattr(m.bias, "data"):
                    m.bias.data.fill_(0.1)
        self.apply(weights_init)

    def forward(self, x):
        if hasattr(self.scale, "data"):
            x = x * self.scale
        if hasattr(x, "requires_grad"):
            x = x + 1
        return self.conv(self.plain(self.norm(x)))
"""
    for args in ((), (True,)):
        model, port, _ = both(source, *args)
        theirs, ours, _ = loaded(source)
        made = migrator.to_state_dict(ours["M"](*args, rngs=nnx.Rngs(0)))
        for name in ("norm.weight", "conv.bias"):
            np.testing.assert_array_equal(made[name], theirs["M"](*args).state_dict()[name])
        same(model, port, np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 4, 3))
