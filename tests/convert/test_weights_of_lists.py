"""Weights of the layers that a list has just been given, and of those whose class only a run tells, written in place."""

from __future__ import annotations

import numpy as np
import pytest

import migrator
from tests.convert.tools import both, check, rules_of

NET = """
class M(nn.Module):
    def __init__(self, linear=True):
        super().__init__()
        {lines}

    def forward(self, x):
        return self.net(x)
"""
LISTED = "{lines}\n        self.net = nn.Sequential(*layers)"
CHOSEN = (
    "layer = nn.Linear(4, 4) if linear else nn.LayerNorm(4)\n        {lines}\n"
    "        self.net = layer"
)


def _net(lines: str, around: str = LISTED) -> str:
    body = "\n        ".join(one.strip() for one in lines.split(";"))
    return NET.format(lines=around.format(lines=body))


def _starts_alike(source: str, *args: object) -> None:
    """What constructors write that draw nothing is the same on both sides; ``both`` would carry torch's over."""
    check(source, *args)
    model, _, code = both(source, *args)
    made: dict[str, object] = {}
    exec(code, made)
    fresh = made["M"](*args, rngs=made["nnx"].Rngs(1))  # type: ignore[operator, attr-defined]
    state = migrator.to_state_dict(fresh)
    for name, want in model.state_dict().items():
        np.testing.assert_allclose(state[name], want.numpy(), err_msg=name, rtol=1e-6)


FILL = "nn.init.constant_({0}.weight, 0.5); nn.init.zeros_({0}.bias)"


@pytest.mark.parametrize(
    "lines",
    [
        f"layers = []; layers.extend([nn.Linear(4, 4), nn.LeakyReLU(0.2)]); {FILL.format('layers[-2]')}",
        f"layers = []; layers += [nn.LayerNorm(4), nn.Linear(4, 4), nn.PReLU()]; {FILL.format('layers[-2]')}",
        f"layers = [nn.LayerNorm(4)]; layers.append(nn.Linear(4, 4)); layers.append(nn.ReLU()); {FILL.format('layers[-2]')}",
        "layers = [nn.ReLU()]; layers.append(nn.Linear(4, 4)); layers[-1].weight.data.fill_(2);"
        "layers[-1].bias.data.copy_(torch.arange(4.0))",
        "layers = [nn.LayerNorm(4)]; layers.append(nn.Linear(4, 4)); nn.init.ones_(layers[-1].weight);"
        "nn.init.ones_(layers[-1].bias)\n        with torch.no_grad():\n            layers[-1].bias *= 0.25"
        "\n            layers[-1].weight[0] = 3",
    ],
)
def test_the_layer_that_was_just_appended(lines: str) -> None:
    code = check(_net(lines))
    assert "initialize(" not in code  # its class is known
    _starts_alike(_net(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "layers = [nn.ReLU()]; layers.append(nn.Linear(4, 4)); other = layers; other.append(nn.LayerNorm(4))",
        "layers = [nn.LayerNorm(4)]; layers.append(nn.Linear(4, 4)); layers.reverse()",
        "layers = [nn.LayerNorm(4), nn.Linear(4, 4)]; layers += [nn.LayerNorm(4)] if linear else []",
    ],
)
def test_a_list_that_is_changed_otherwise(lines: str) -> None:
    source = _net(lines + "; nn.init.constant_(layers[-1].weight, 0.5)")
    for linear in (True, False):
        _starts_alike(source.replace("nn.Linear", "nn.LayerNorm"), linear)
        if not rules_of(source):
            check(source, linear)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize(
    "lines",
    [
        "layer.weight.data.fill_(3); layer.weight.data *= 0.25; layer.bias.data.zero_(); layer.bias.data -= 2",
        "nn.init.ones_(layer.weight); nn.init.ones_(layer.bias)\n        with torch.no_grad():\n"
        "            layer.weight /= layer.weight.sum()\n            layer.bias += 0.5 * layer.weight.sum()",
        "nn.init.ones_(layer.weight); nn.init.ones_(layer.bias)\n        with torch.no_grad():\n"
        "            layer.weight[0] = 0.5\n            layer.bias[1:] = 2 * layer.bias[1:]",
        "nn.init.ones_(layer.weight); nn.init.ones_(layer.bias)\n        with torch.no_grad():\n"
        "            layer.weight -= 0.5 * layer.weight",
    ],
)
def test_one_of_several_layers(lines: str, linear: bool) -> None:
    _starts_alike(_net(lines, CHOSEN), linear)


@pytest.mark.parametrize(
    "lines",
    [
        "w = layer.weight.data; w *= 2",
        "w, b = layer.weight.data, layer.bias.data; w[0] = 1; b[:2] = w.flatten()[:2]",
        "w = layer.weight\n        with torch.no_grad():\n            w *= 2",
        "layer.weight.data[0] *= 2",
    ],
)
def test_a_name_for_the_weight_of_one_of_several(lines: str) -> None:
    # the name stands for a value in the output: what is written to it would be lost
    assert "MUT002" in rules_of(_net(lines, CHOSEN))


def test_a_name_for_the_weight_of_a_module_that_is_gone_over() -> None:
    lines = """layer = nn.Linear(4, 4); self.net = layer
        for m in self.modules():
            if hasattr(m, "weight"):
                w = m.weight
                with torch.no_grad():
                    w *= 2"""
    assert "MUT002" in rules_of(_net(lines, "{lines}"))


def test_the_last_of_a_sequential_with_activations_in_place() -> None:
    lines = (
        "layers = []; layers.extend([nn.Linear(4, 4), nn.LeakyReLU(0.2, inplace=True)])"
        "; layers.extend([nn.Linear(4, 4)]); self.net = nn.Sequential(*layers)"
        "; nn.init.ones_(self.net[0].weight); nn.init.ones_(self.net[-1].weight)"
        "; nn.init.zeros_(self.net[0].bias); nn.init.zeros_(self.net[-1].bias)"
        "\n        with torch.no_grad():\n            self.net[-1].weight *= 0.25"
    )
    _starts_alike(_net(lines, "{lines}"))
