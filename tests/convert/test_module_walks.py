"""children(), modules(), named_parameters(): torch's order and names, with the layers that became functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

from rules.compat import named
from tests.convert.tools import body, convert, rules_of

NET = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.norm = nn.LayerNorm(4)
        self.act = nn.ReLU()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.GELU())])
        self.head = nn.Linear(4, 2)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        base = Base()
        self.features = nn.Sequential(*list(base.children())[:2])
        self.names = [name for name, p in base.named_parameters()]
        self.all = [name for name, m in base.named_modules()]

    def forward(self, x):
        return self.features(x)
"""


def both(source: str) -> tuple[Any, Any]:
    theirs: dict = {"torch": torch, "nn": torch.nn}
    exec(source, theirs)
    result = convert(source)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    return theirs["M"](), ours["M"](rngs=nnx.Rngs(0))


def test_children_and_names_are_torchs() -> None:
    theirs, ours = both(NET)
    assert ours.names == theirs.names
    assert ours.all == theirs.all
    x = torch.randn(2, 4)
    torch.testing.assert_close(torch.tensor(ours(x.numpy()).tolist()), theirs(x).detach())


def test_every_module_is_visited_once() -> None:
    block = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    net = nnx.Sequential(block, nnx.Dropout(0.5, rngs=nnx.Rngs(0)), block)
    assert [name for name, _ in named.named_modules(net)] == ["", "0", "1"]
    assert [name for name, _ in named.named_parameters(net)] == ["0.weight", "0.bias"]


def test_a_forward_pass_by_order_is_found() -> None:
    source = (
        NET + "\n    def both(self, x):\n        for m in self.modules():\n            x = m(x)\n"
    )
    assert rules_of(source) == ["API007"]


def test_functions_in_attributes_are_not_taken_for_children() -> None:
    theirs, ours = both(NET.replace("self.act = nn.ReLU()", "self.act = torch.relu"))
    assert ours.names == theirs.names
    assert ours.all == theirs.all


def test_order_free_loops_stay_short() -> None:
    loop = "def init(net: nn.Module):\n    for m in net.modules():\n        if isinstance(m, {}):\n"
    free = body(loop.format("nn.Conv2d") + "            nn.init.zeros_(m.bias)\n", "def init")
    assert "for _, m in nnx.iter_modules(net):" in free
    counted = loop.format("nn.Conv2d") + "            m.number = 1\n            return m\n"
    assert "for m in modules(net):" in body(counted, "def init")


def test_a_function_that_asks_for_none_narrows() -> None:
    source = """
def exists(x):
    return x is not None


def f(x: torch.Tensor, m: torch.Tensor | None = None, layer: nn.Linear | None = None):
    if exists(m):
        x = x.masked_fill(m.flatten(1) > 0, 0.0)
    return x if not exists(layer.bias) else x + 1
"""
    made = body(source, "def f")
    assert "m.reshape(m.shape[0], -1)" in made
    assert "exists(layer.bias)" in made


def test_an_initialiser_of_a_weight_in_other_words() -> None:
    """``torch.as_tensor`` and ``typing.cast`` give the weight itself."""
    source = """
from typing import cast


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(3, 2)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.constant_(torch.as_tensor(m.weight), 0.5)
                nn.init.constant_(cast(torch.Tensor, torch.as_tensor(m.bias)), 0.25)

    def forward(self, x):
        return self.b(self.a(x))
"""
    result = convert(source)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    port = ours["M"](rngs=nnx.Rngs(0))
    assert float(port.a.kernel[...].min()) == float(port.b.kernel[...].max()) == 0.5
    assert float(port.b.bias[...].max()) == 0.25


def test_an_initialiser_that_goes_by_the_axes_of_a_weight_in_other_words() -> None:
    """Its fan is that of torch's layout, (out, in)."""
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.c = nn.Linear(200, 2), nn.Conv2d(50, 2, 2)
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Conv2d)):
                nn.init.kaiming_normal_(torch.as_tensor(m.weight))
"""
    result = convert(source)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    port = ours["M"](rngs=nnx.Rngs(0))
    for drawn in (port.a.kernel[...], port.c.weight[...]):
        np.testing.assert_allclose(float(drawn.std()), (2 / 200) ** 0.5, rtol=0.1)


@pytest.mark.parametrize("target", ["torch.as_tensor(x)", "torch.as_tensor(self.w, device='cpu')"])
def test_an_initialiser_of_what_may_be_a_copy_is_a_finding(target: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self, x):\n        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(3))\n"
        f"        nn.init.zeros_({target})\n"
    )
    assert not convert(source).complete


GENERATOR = """
class Base(nn.Module):
    def __init__(self, n: int = 3):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def get_parameters(self, key=None):
        for name, param in self.named_parameters():
            if key is None or key in name:
                yield param

    def weight_parameters(self):
        return self.get_parameters("weight")


class Net(Base):
    def forward(self, x):
        return {}
"""


def test_a_generator_that_hands_parameters_out() -> None:
    """What goes by their order is whoever asks, as an optimiser does; a forward pass must not."""
    assert not rules_of(GENERATOR.format("self.fc(x)"))
    for call in ("self.get_parameters()", "self.weight_parameters()"):
        found = rules_of(GENERATOR.format(f"self.fc(x) + sum(p.sum() for p in {call})"))
        assert found == ["API007"]
