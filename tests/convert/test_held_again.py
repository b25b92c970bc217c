"""Lists, tuples and tables of layers, parameters and buffers that the module has under other names as well."""

from __future__ import annotations

import numpy as np
import pytest

import migrator
from migrator import convert_source
from tests.convert.tools import check, loaded, pair, rules_of, same

SOURCE = """
import torch
import torch.nn as nn


class L1(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        for i in range(n):
            setattr(self, f"block{i}", nn.Linear(3, 3))
        self.blocks = [getattr(self, f"block{i}") for i in range(n)]
    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


class L2(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.blocks = []
        for i in range(n):
            self.add_module(f"block{i}", nn.Linear(3, 3))
            self.blocks.append(getattr(self, f"block{i}"))
    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


class L3(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.names = []
        for i in range(n):
            setattr(self, f"block{i}", nn.Linear(3, 3))
            self.names.append(f"block{i}")
    def forward(self, x):
        for n in self.names:
            x = getattr(self, n)(x)
        return x


class L4(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.both = (self.a, self.b)
        self.table = {"a": self.a, "b": self.b}
        self.list = [self.a, self.b]
    def forward(self, x):
        for l in self.both:
            x = l(x)
        return self.table["a"](x) + self.list[1](x)


class GaussianFilter(nn.Module):
    def __init__(self, spatial_dims, sigma, requires_grad=False):
        super().__init__()
        self.sigma = [
            nn.Parameter(torch.as_tensor(s, dtype=torch.float), requires_grad=requires_grad)
            for s in (sigma,) * spatial_dims
        ]
        for idx, param in enumerate(self.sigma):
            self.register_parameter(f"kernel_sigma_{idx}", param)
    def forward(self, x):
        for s in self.sigma:
            x = x * s
        return x


class P2(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.ws = []
        for i in range(n):
            w = nn.Parameter(torch.full((3,), float(i + 1)))
            self.register_parameter("w%d" % i, w)
            self.ws.append(w)
        self.ls = [nn.Linear(3, 3) for _ in range(n)]
        for i, l in enumerate(self.ls):
            setattr(self, f"l{i}", l)
    def forward(self, x):
        for w, l in zip(self.ws, self.ls):
            x = l(x * w)
        return x


class P3(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        for i in range(n):
            self.register_buffer(f"b{i}", torch.full((3,), float(i + 1)))
            setattr(self, f"p{i}", nn.Parameter(torch.ones(3)))
        self.bs = [getattr(self, f"b{i}") for i in range(n)]
    def forward(self, x):
        for i in range(2):
            x = x * getattr(self, f"b{i}") + getattr(self, f"p{i}")
        return x


class Z1(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.qs = nn.ModuleList([nn.Linear(3, 3) for _ in range(n)])
        self.ks = nn.ModuleList([nn.Linear(3, 3) for _ in range(n)])
        self.acts = nn.ModuleList([nn.Tanh(), nn.ReLU()])
        self.pairs = list(zip(self.qs, self.ks, range(n)))
        self.last = tuple(self.ks[1:])
        self.steps = list(enumerate(reversed(self.qs)))
        self.named = list(zip(("a", "b"), self.acts))
        self.fc, self.out = nn.Linear(3, 3), nn.Linear(3, 3)
        self.table = {"fc": self.fc, "out": self.out} if n > 1 else {}
    def forward(self, x):
        for q, k, i in self.pairs:
            x = q(x) + k(x) * i
        for i, q in self.steps:
            x = q(x) + i
        x = self.table["fc"](x)
        return self.last[0](x) + self.named[0][1](x)


class Y(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return x * self.scale


def made(n):
    layers, widths = nn.ModuleList(), {}
    for i in range(n):
        block = nn.Sequential()
        layer = {"a": Y(), "b": nn.Linear(3, 3), "c": nn.ReLU()}["abc"[i % 3]]
        block.add_module(f"layer{i}", layer)
        layers.append(block)
    return widths, layers


class G1(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.widths, self.layers = made(n)
        self.own = [layer[0] for layer in self.layers if isinstance(layer[0], Y)]
        self.parts = [layer for layer in self.layers]
        self.firsts = [layer[0] for layer in self.layers[1:]]
    def forward(self, x):
        for layer in self.parts:
            x = layer(x)
        return x + self.own[1](x) + self.firsts[0](x)
"""
BUILT = (
    "G1()",
    "Z1()",
    "L1()",
    "L2()",
    "L3()",
    "L4()",
    "GaussianFilter(2, 1.5)",
    "GaussianFilter(2, 1.5, True)",
    "P2()",
    "P3()",
)


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    return loaded(SOURCE)[:2]


@pytest.mark.parametrize("built", BUILT)
def test_the_same_objects_under_both_names(both: tuple[dict, dict], built: str) -> None:
    original, port = pair(*both, built)
    state = {key: value + 0.5 for key, value in original.state_dict().items()}
    original.load_state_dict(state)
    migrator.load_state_dict(port, state)
    assert set(migrator.to_state_dict(port)) == set(state)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    same(original, port, x)
    same(original, port, x, jit=True)
    assert set(migrator.to_state_dict(port)) == set(state)


@pytest.mark.parametrize(
    "value",
    [
        "[nn.Linear(3, 3), nn.Linear(3, 3)]",
        "list(zip(self.known, [nn.Linear(3, 3)]))",
        "tuple(zip((1, 2), [nn.Linear(3, 3) for _ in range(2)]))",
        "list(zip(self.known, range(1)))\n        self.layers.append((nn.Linear(3, 3), 2))",
        "list(zip(self.known, range(1)))\n        self.known[0] = nn.Linear(3, 3)",
        "[x for x in self.known]\n        self.known[0] = nn.Linear(3, 3)",
        "[x for x in [nn.Linear(3, 3)] if isinstance(x, nn.Linear)]",
        "[x for x in unknown if isinstance(x, (nn.Linear, nn.Conv2d))]",
    ],
)
def test_layers_that_have_no_other_name_are_a_finding(value: str) -> None:
    source = """
import torch.nn as nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = nn.ModuleList([nn.Linear(3, 3)])
        self.layers = {value}

    def forward(self, x):
        return self.layers[0](x)
"""
    source = source.replace("{value}", value)
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["API008"]


GIVEN_AGAIN = """
class M(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.a = nn.Linear(4, 4)
        self.layers = HELD
        self.layers_each = n
        LINES

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.append(nn.Linear(4, 4))
        self.layers[0] = nn.Linear(4, 4)
        self.a = nn.Linear(4, 4)
"""


@pytest.mark.parametrize(
    "held", ["[self.a, self.b]", "(self.a, self.b)", "[getattr(self, one) for one in ('a', 'b')]"]
)
@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ("self.a = nn.Linear(4, 4)", ""),
        ("self.a = self.b", ""),
        ("if n > 2:\n            self.b = nn.Linear(4, 4)", ""),
        ("setattr(self, 'a', nn.Linear(4, 4))", ""),
        ("self.add_module('b', nn.Linear(4, 4))", ""),
        ("del self.a", ""),
        ("self.layers[0] = nn.Linear(4, 4)", ""),
        ("self.n = n", "\n\ndef swap(m: M):\n    m.a = nn.Linear(4, 4)\n"),
        ("self.n = n", "\n\ndef swap(m):\n    m.a = nn.Linear(4, 4)\n"),
        (
            "self.n = n",
            "\n\nclass N(M):\n    def __init__(self):\n        super().__init__()\n        self.a = self.b\n",
        ),
    ],
)
def test_a_layer_that_a_list_holds_and_the_module_no_more(held: str, lines: str, more: str) -> None:
    source = GIVEN_AGAIN.replace("HELD", held).replace("LINES", lines) + more
    assert "API008" in rules_of(source)


@pytest.mark.parametrize("held", ["[self.a, self.b]", "[getattr(self, c) for c in ('a', 'b')]"])
def test_a_list_whose_layers_the_module_keeps(held: str) -> None:
    check(GIVEN_AGAIN.replace("HELD", held).replace("LINES", "self.c = nn.Linear(4, 4)"))
