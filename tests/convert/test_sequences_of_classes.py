"""Classes that derive from Sequential, and what they hand on of what they are handed."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert

BLOCKS = {
    "arguments": "super().__init__(nn.Linear(4, 4), nn.LayerNorm(4))",
    "names": 'super().__init__()\nself.add_module("c", nn.Linear(4, 4))\nself.add_module("bn", nn.LayerNorm(4))',
    "appended": "super().__init__()\nself.append(nn.Linear(4, 4))\nself.append(nn.LayerNorm(4))",
    "attributes": "super().__init__()\nself.conv = nn.Linear(4, 4)\nself.bn = nn.LayerNorm(4)",
    "beside others": 'super().__init__()\nrates = {"a": 1}\nrates.pop("a")\nself.add_module("c", nn.Linear(4, 4))\n'
    "found = [1, 2]\ndel found[0]",
    "one of them": 'super().__init__()\nif wide:\n    self.add_module("d", nn.Dropout(0.1))\n'
    'self.add_module("c", nn.Linear(4, 4))',
}
HANDING_ON = {
    "nothing of its own": 'super().__init__()\nself.add_module("i", nn.Identity())',
    "perhaps": 'super().__init__()\nif wide:\n    self.add_module("c", nn.Linear(4, 4))\nself.i = nn.Identity()',
    "taken out": 'super().__init__()\nself.add_module("c", nn.Linear(4, 4))\ndel self.c',
    "popped": "super().__init__()\nself.append(nn.Linear(4, 4))\nself.pop(0)",
    "by its name": 'super().__init__()\nself.add_module("c", nn.Linear(4, 4))\ndelattr(self, "c")',
    "by its table": 'super().__init__()\nself.add_module("c", nn.Linear(4, 4))\nself._modules.pop("c")',
    "left before": "super().__init__()\nif wide:\n    return\nself.append(nn.Linear(4, 4))",
}
NET = """
class Block(nn.Sequential):
    def __init__(self, wide=True):
        {lines}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block()
        self.act = nn.ReLU(inplace=True)
        self.b = Block()

    def forward(self, x):
        x = x * 1
        return x + self.b(self.act(self.a(x)))
"""


def _net(lines: str) -> str:
    return NET.format(lines=lines.replace("\n", "\n        "))


@pytest.mark.parametrize("block", BLOCKS)
def test_what_a_layer_of_its_own_makes_is_new(block: str) -> None:
    check(_net(BLOCKS[block]))


@pytest.mark.parametrize("block", HANDING_ON)
def test_what_may_hand_on_its_argument_is_reported(block: str) -> None:
    assert "MUT" in str([one.rule for one in convert(_net(HANDING_ON[block])).findings])


CHOSEN = """
class M(nn.Module):
    def __init__(self, rate=0.0, norm=None):
        super().__init__()
        self.part = nn.Sequential({layer})

    def forward(self, x):
        x = x * 1
        y = self.part(x)
        y += 1
        return x * y
"""


@pytest.mark.parametrize(
    "layer", ["nn.ReLU() if rate > 0 else nn.Identity()", "norm() if norm else nn.Identity()"]
)
def test_a_layer_that_is_chosen_may_hand_on_its_argument(layer: str) -> None:
    assert not convert(CHOSEN.format(layer=layer)).complete


def test_a_layer_that_is_chosen_makes_new_values_if_all_do() -> None:
    check(CHOSEN.format(layer="nn.ReLU() if rate > 0 else nn.Tanh()"))


def test_a_list_that_was_filled_with_blocks_makes_new_values() -> None:
    check(
        """
def default_conv(n, m):
    return nn.Linear(n, m)

class Block(nn.Module):
    def __init__(self, conv, n):
        super().__init__()
        self.fc = conv(n, n)

    def forward(self, x):
        return x + self.fc(x)

class M(nn.Module):
    def __init__(self, conv=default_conv, depth=2):
        super().__init__()
        body = [Block(conv, 4) for _ in range(depth)]
        body.append(conv(4, 4))
        self.body = nn.Sequential(*body)

    def forward(self, x):
        res = self.body(x)
        res += x
        return res * x
"""
    )
