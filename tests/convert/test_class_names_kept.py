"""Names of classes that a program keeps, counts or gives back, without comparing them with a text."""

from __future__ import annotations

import pytest

from tests.convert.tools import loaded, pair

NET = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4))
        self.many = nn.ModuleList([nn.Embedding(4, 4), nn.ReLU()])

    def forward(self, x):
        return READ
"""


@pytest.mark.parametrize(
    "read",
    [
        "[type(m).__name__ for m in self.net]",
        "[m.__class__.__name__ for m in self.many]",
        "{type(m).__name__: i for i, m in enumerate(self.net)}",
        "sorted(type(m).__name__ for m in self.net)",
        "len(type(self.many).__name__)",
        "type(self.many[1]).__name__",
    ],
)
def test_they_are_those_of_torch(read: str) -> None:
    theirs, ours, _ = loaded(NET.replace("READ", read))
    model, port = pair(theirs, ours, "Net()")
    assert port(None) == model(None)
