"""Attributes that are None until a forward pass keeps something there of which nothing is known."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        {made}

    def pair(self, x):
        return self.l(x), self.l(x * 2)

    def loss(self, *args, **kwargs):
        self.kept = self.l(args[0])
        return self.kept * kwargs["scale"]

    def forward(self, x):
        batch = dict(x=x)
        return self.run(batch)

    def run(self, batch):
        {line}
"""


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("self.kept = None", "self.kept = batch['x']; return self.l(self.kept)"),
        ("self.kept = None", "self.kept = batch.get('x'); return self.l(self.kept)"),
        ("self.kept = None", "return self.loss(batch['x'], scale=2) + self.kept"),
        ("self.kept = 0", "self.kept = batch['x']; return self.l(self.kept)"),
        (
            "self.a = self.b = None",
            "self.a, self.b = self.pair(batch['x']); return self.a + self.b",
        ),
        (
            "self.a = self.n = None",
            "self.n = 2; self.a = self.l(batch['x']); return self.a * self.n",
        ),
    ],
)
def test_what_is_kept_later(made: str, line: str) -> None:
    check(SOURCE.format(made=made, line=line))


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ("self.kept = []", "self.kept = [*self.kept, self.l(batch['x'])]; y = self.kept[-1]"),
        ("self.kept = {}", "self.kept = {**self.kept, 'k': batch['x']}; y = self.kept['k']"),
        ("self.kept = []", "self.kept = self.kept[-3:] + [batch['x']]; y = self.kept[-1]"),
        ("self.kept = []", "self.kept = self.kept or [batch['x']]; y = self.kept[-1]"),
    ],
)
def test_what_begins_as_a_container_of_nothing(made: str, line: str) -> None:
    check(SOURCE.format(made=made, line=f"{line}; return self.l(y)"))
