"""``isinstance(layer, nn.ReLU)``: layers that are functions in the output, told by the functions that they are."""

from __future__ import annotations

import jax
import pytest
from flax import nnx

from migrator.convert.stateless_layers import _makers, _standing_for
from rules.compat.children import Stateless, is_stateless_of
from rules.compat.layer_functions import is_layer_of
from tests.convert.tools import check, loaded, rules_of

LAYERS = {
    "ReLU": ["nn.ReLU()", "nn.ReLU(inplace=True)"],
    "ReLU6": ["nn.ReLU6()"],
    "Hardtanh": ["nn.Hardtanh()", "nn.Hardtanh(-2, 2)"],
    "LeakyReLU": ["nn.LeakyReLU(0.2)", "nn.LeakyReLU()"],
    "Tanh": ["nn.Tanh()"],
    "Sigmoid": ["nn.Sigmoid()"],
    "GELU": ["nn.GELU()", "nn.GELU('tanh')"],
    "SiLU": ["nn.SiLU()"],
    "Flatten": ["nn.Flatten()", "nn.Flatten(0, 1)"],
    "MaxPool2d": [
        "nn.MaxPool2d(2)",
        "nn.MaxPool2d(3, 2, ceil_mode=True)",
        "nn.MaxPool2d(2, dilation=2)",
        "nn.MaxPool2d(2, return_indices=True)",
    ],
    "MaxPool1d": ["nn.MaxPool1d(2)", "nn.MaxPool1d(3, 2, ceil_mode=True)"],
    "AvgPool2d": ["nn.AvgPool2d(2)"],
    "AdaptiveMaxPool2d": ["nn.AdaptiveMaxPool2d(1)"],
    "PixelShuffle": ["nn.PixelShuffle(2)"],
    "Identity": ["nn.Identity()"],
    "Linear": ["nn.Linear(2, 2)"],
    "BatchNorm2d": ["nn.BatchNorm2d(2)"],
}


@pytest.mark.parametrize("way", ["layers.children()", "layers"])
def test_each_is_told_from_all_others(way: str) -> None:
    built = ", ".join(one for made in LAYERS.values() for one in made)
    asked = "".join(f"            isinstance(layer, nn.{name}),\n" for name in LAYERS)
    source = f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        layers = nn.Sequential({built})
        self.found = [tell(layer) for layer in {way}]

    def forward(self, x):
        return x


def tell(layer: nn.Module):
    return [
{asked}    ]
"""
    theirs, ours, _ = loaded(source)
    assert ours["M"](rngs=nnx.Rngs(0)).found == theirs["M"]().found


LOOP = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        feats = nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Tanh(), nn.Linear(5, 4))
        self.net = nn.Sequential()
        for i, layer in enumerate({way}):
            if {test}:
                layer = nn.Softplus()
            self.net.add_module(f"l{{i}}", layer)

    def forward(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize("way", ["feats.children()", "list(feats)", "feats"])
@pytest.mark.parametrize(
    "test",
    [
        "isinstance(layer, nn.ReLU)",
        "not isinstance(layer, nn.Linear) and isinstance(layer, nn.Tanh)",
        "isinstance(layer, (nn.ReLU, nn.Conv2d))",
        "isinstance(layer, (nn.Linear, nn.Tanh, nn.MaxPool2d)) and i == 2",
        "type(layer) == nn.ReLU",
        "type(layer) is not nn.Linear and type(layer) in (nn.Tanh, nn.ReLU6)",
    ],
)
def test_in_a_loop(way: str, test: str) -> None:
    check(LOOP.format(way=way, test=test))


@pytest.mark.parametrize(
    "source",
    [
        LOOP.format(way="feats", test="isinstance(layer, nn.Softmax)"),
        LOOP.format(way="feats", test="isinstance(layer, nn.ReLU)")
        + "\n\nclass Act(nn.ReLU):\n    pass\n",
        "def f(act):\n    return 1 if isinstance(act, nn.ReLU) else 2\n",
        LOOP.format(way="feats", test="isinstance(list(feats)[i], (nn.ReLU, nn.Linear))"),
    ],
)
def test_others_stay_findings(source: str) -> None:
    assert "API011" in rules_of(source)


def test_no_function_stands_for_two_layers() -> None:
    found = [maker for name in _standing_for() for maker in _makers(name)]
    assert len(found) == len(set(found))
    assert not _makers("torch.nn.Softmax")


def test_is_layer_of() -> None:
    relu, pool = jax.nn.relu, jax.tree_util.Partial(max, 2)
    for layer in (relu, Stateless(relu)):
        assert is_layer_of(layer, relu)
        assert is_layer_of(layer, min, relu)
        assert not is_layer_of(layer, jax.nn.relu6, (relu, 1))
    assert is_layer_of(pool, (max, 2))
    assert not is_layer_of(pool, (max, 1), min)
    assert is_stateless_of(Stateless(relu), relu)
    assert not is_stateless_of(relu, relu)
