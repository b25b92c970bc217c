"""torch's constructors call ``self.reset_parameters()``, which a derived class may replace; and who has such a method."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import convert, loaded, rules_of

LAYERS = {
    "nn.Linear": "4, 4",
    "nn.Conv2d": "4, 4, 3",
    "nn.ConvTranspose1d": "4, 4, 3",
    "nn.BatchNorm2d": "4",
    "nn.GroupNorm": "2, 4",
    "nn.LayerNorm": "4",
    "nn.GRU": "4, 4",
    "nn.LSTMCell": "4, 4",
}


def _values(module: torch.nn.Module) -> list[float]:
    return sorted({round(float(v), 4) for p in module.parameters() for v in p.flatten()})


def _port_values(port: nnx.Module) -> list[float]:
    leaves = [np.asarray(v[...]) for _, v in nnx.to_flat_state(nnx.state(port, nnx.Param))]
    return sorted({round(float(v), 4) for leaf in leaves for v in leaf.ravel()})


@pytest.mark.parametrize("init", ["", "by super", "by name"])
@pytest.mark.parametrize("base", LAYERS)
def test_what_replaces_the_method_is_called(base: str, init: str) -> None:
    calls = {"by super": "super().__init__", "by name": f"{base}.__init__"}
    lines = ""
    if init:
        own = "self, " if init == "by name" else ""
        lines = f"    def __init__(self):\n        {calls[init]}({own}{LAYERS[base]})\n\n"
    source = (
        f"class M({base}):\n{lines}    def reset_parameters(self):\n"
        "        for p in self.parameters():\n            nn.init.constant_(p, 0.125)\n"
    )
    theirs, ours, _ = loaded(source)
    args = () if init else tuple(int(n) for n in LAYERS[base].split(","))
    model, port = theirs["M"](*args), ours["M"](*args, rngs=nnx.Rngs(0))
    assert _values(model) == _port_values(port) == [0.125]


def test_a_constructor_that_calls_it_anyway_does_so_once() -> None:
    source = """
    class M(nn.Linear):
        def __init__(self, n):
            super().__init__(n, n)
            self.scale = 3
            self.reset_parameters()

        def reset_parameters(self):
            nn.init.ones_(self.weight)
    """
    assert convert(source).code.count("self.reset_parameters()") == 1
    source = source.replace("nn.init.ones_(self.weight)", "self.weight.data.mul_(2)")
    assert convert(source).code.count("self.reset_parameters()") == 2


def test_who_has_the_method_is_asked() -> None:
    theirs, ours, _ = loaded("""
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.eps, self.hidden_size = 1e-5, 4
        self.scale = nn.Parameter(torch.full((4,), 3.0))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.conv = nn.Conv1d(4, 4, 1)
        self.rnn = nn.GRU(4, 4)
        self.norm = nn.LayerNorm(4)
        self.own = Own()
        self.act = nn.ReLU()
        self.apply(self.start)

    @staticmethod
    def start(m):
        if hasattr(m, "reset_parameters"):
            m.reset_parameters()
            for p in m.parameters():
                p.data.fill_(0.25)
""")
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    assert _values(model) == _port_values(port) == [0.25, 3.0]


def test_a_class_of_the_file_that_is_called_like_a_layer_is_found() -> None:
    source = """
class GRU(nn.Module):
    pass


def start(m: nn.Module):
    if hasattr(m, "reset_parameters"):
        m.reset_parameters()
"""
    assert "API005" in rules_of(source)


@pytest.mark.parametrize("hint", ["nn.Bilinear", "nn.Module"])
def test_a_bilinear_layer_is_drawn_as_wide_as_its_first_input_says(hint: str) -> None:
    _, ours, _ = loaded(f"""
def again(m: {hint}):
    m.reset_parameters()


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Bilinear(16, 100, 3)
        again(self.b)

    def forward(self, x, y):
        return self.b(x, y)
""")
    made = ours["M"](rngs=nnx.Rngs(0))
    weights = np.abs(np.asarray(made.b.weight[...]))
    assert 0.24 < weights.max() <= 0.25  # 1/√16, not 1/√1600
    assert np.abs(np.asarray(made.b.bias[...])).max() <= 0.25
