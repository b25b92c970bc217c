"""Layers that a module keeps under names that it makes up, and what is asked of them."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self, n=2):
        super().__init__()
        self.n = n
        for i in range(n):
            {0}

    def forward(self, x):
        for i in range(self.n):
            {1}
        return x
"""


@pytest.mark.parametrize(
    ("kept", "read"),
    [
        ('setattr(self, f"fc{i}", nn.Linear(4, 4))', 'x = x @ getattr(self, f"fc{i}").weight'),
        (
            'self.add_module("fc%d" % i, nn.Linear(4, 4))',
            'x = x @ getattr(self, "fc%d" % i).weight.t()',
        ),
        (
            'setattr(self, "C_{}".format(i), nn.Embedding(3, 4))',
            'x = x + getattr(self, "C_{}".format(i)).weight.sum(0)',
        ),
        (
            'setattr(self, "n%d" % i, nn.LayerNorm(4))',
            'x = x * getattr(self, "n%d" % i).weight + getattr(self, "n%d" % i).eps',
        ),
        (
            'setattr(self, "fc" + str(i), nn.Linear(4, 4))',
            'layer = getattr(self, "fc" + str(i)); x = x + layer.weight.sum() + layer.in_features',
        ),
    ],
)
def test_the_weight_of_one(kept: str, read: str) -> None:
    check(SOURCE.format(kept, read.replace("; ", "\n            ")))


def test_pairs_of_a_module_dict() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [("x", nn.Linear(4, 4)), ("y", nn.Linear(4, 4))]
        self.layers = nn.ModuleDict(layers)

    def forward(self, x):
        for name, layer in self.layers.items():
            x = layer(x) + layer.weight.mean()
        return x
"""
    )


def test_names_of_the_classes_of_children() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.0), nn.Identity())
        self.counts = {}
        for m in self.net.children():
            self.counts[type(m).__name__] = self.counts.get(type(m).__name__, 0) + 1

    def forward(self, x):
        return self.net(x) * self.counts.get("ReLU", 0) + self.counts.get("Identity", 0)
"""
    )


def test_a_state_that_begins_as_none_and_is_given_by_a_layer_is_a_finding() -> None:
    source = """
class M(nn.Module):
    def __init__(self, hidden=None):
        super().__init__()
        self.hidden = hidden
        self.rnn = nn.GRU(3, 3)

    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        self.hidden = self.hidden.detach()
        return out
"""
    assert "API005" in rules_of(source)
