"""``for n in ("head", "tail")[k:]: setattr(self, n, nn.Identity())``: which children another takes the place of."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, rules_of

SOURCE = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(4, 4)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        shortcut = x
        x = self.conv(x)
        x = self.act(x)
        x += shortcut
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(4, 4)
        self.tail = nn.Linear(4, 4)

    def prune(self, k: int):
        PRUNE

    def forward(self, x):
        return self.tail(self.head(self.block(x)))
"""
NAMED = {
    "in turn": "names = ('head', 'tail')\n        names = names[k:]\n        for n in names:",
    "at once": "for n in ('head', 'tail')[k:]:",
}
PUT = "\n            setattr(self, n, nn.Identity())"


@pytest.mark.parametrize("named", NAMED.values(), ids=NAMED)
def test_other_children_are_what_they_were(named: str) -> None:
    model, port, _ = both(SOURCE.replace("PRUNE", named + PUT))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x.clone()).detach(), atol=1e-6)


@pytest.mark.parametrize(
    "named",
    [
        "for n in ('head', 'conv')[k:]:",
        "names = ('head', 'tail')\n        if k:\n            names = ('conv',)\n        for n in names:",
        "names = ('head',)\n        names += ('conv',)\n        for n in names:",
        "names = ['head']\n        names.append('conv')\n        for n in names:",
        "names = ('head', 'tail')\n        names, k = ('conv',), 1\n        for n in names:",
        "for n in self.names[k:]:",
        "for n, _ in self.named_children():",
    ],
)
def test_what_may_be_put_in_the_place_of_a_layer_is_a_finding(named: str) -> None:
    assert rules_of(SOURCE.replace("PRUNE", named + PUT))
