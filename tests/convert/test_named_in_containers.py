"""Layers that a container gains by a name: torch runs them, and a list of layers in the output would not have them."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = NET
        CHANGE

    def forward(self, x):
        for layer in self.net:
            x = layer(x)
        return x
"""
LIST, SEQUENTIAL = "nn.ModuleList([nn.Linear(4, 4)])", "nn.Sequential(nn.Linear(4, 4))"


@pytest.mark.parametrize("made", [LIST, SEQUENTIAL])
@pytest.mark.parametrize(
    "change",
    [
        'setattr(self.net, "extra", nn.Linear(4, 4))',
        'self.net._modules["extra"] = nn.Linear(4, 4)',
        'setattr(self.net, "extra", nn.Linear(4, 4)); print(getattr(self.net, "extra").weight)',
        "self.net.extra = nn.Linear(4, 4)",
        'for i in range(2):\n            setattr(self.net, f"more{i}", nn.Linear(4, 4))',
        'self.net.register_buffer("mean", torch.ones(4))',
        'self.net.register_parameter("gain", nn.Parameter(torch.ones(4)))',
    ],
)
def test_a_further_layer_or_tensor_is_a_finding(made: str, change: str) -> None:
    assert "API007" in rules_of(NET.replace("NET", made).replace("CHANGE", change))


@pytest.mark.parametrize("method", ["add_module", "register_module"])
def test_a_list_gains_no_layer_by_a_name(method: str) -> None:
    change = f'self.net.{method}("extra", nn.Linear(4, 4))'
    assert "API007" in rules_of(NET.replace("NET", LIST).replace("CHANGE", change))


@pytest.mark.parametrize(
    ("made", "change"),
    [
        (SEQUENTIAL, 'self.net.add_module("extra", nn.Linear(4, 4))'),
        (SEQUENTIAL, 'setattr(self.net, "0", nn.Linear(4, 4))'),
        (LIST, "self.net.append(nn.Linear(4, 4))"),
        (LIST, 'setattr(self.net, "scale", 2)'),
    ],
)
def test_what_containers_have_for_it_is_converted(made: str, change: str) -> None:
    check(NET.replace("NET", made).replace("CHANGE", change))


def test_a_layer_of_a_name_that_the_container_has_is_replaced() -> None:
    made = "nn.Sequential(OrderedDict([('fc', nn.Linear(4, 4)), ('act', nn.Tanh())]))"
    source = NET.replace("NET", made).replace("CHANGE", "self.net.fc = nn.Linear(4, 4)")
    check("from collections import OrderedDict\n\n\n" + source)
