"""Parameters that are changed through a view and made anew of it."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import HEADER, rules_of, sides

PROGRAM = """class M(nn.Module):
    def __init__(self, na=2):
        super().__init__()
        self.na = na
        self.m = nn.ModuleList([nn.Linear(4, 12), nn.Linear(4, 12)])
        for conv in self.m:
            conv.bias.data.zero_()
        for conv, s in zip(self.m, (8, 16)):
            LINES

    def forward(self, x):
        return [m.bias for m in self.m]
"""
BACK = "conv.bias = nn.Parameter(b.view(-1), requires_grad=True)"
LINES = [
    f"b = conv.bias.view(self.na, -1); b.data[:, 4] += 1 / s; b.data[:, 5:] += -2.0; {BACK}",
    f"b = conv.bias.view(self.na, -1); b.data.fill_(-4.6); {BACK}",
    f"b = conv.bias.data.view(self.na, -1); b[:, 4] = s; {BACK}",
    f"b = conv.bias.data.reshape(self.na, 6); b[:, 4].add_(s); {BACK}",
]
OTHERS = [
    f"b = conv.bias.data.view(self.na, -1); b[:, 4] += 1; {BACK}; b[:, 3] = 2",
    f"b = conv.bias.data.view(self.na, -1); b[:, 4] += 1; b[:, 3] += conv.bias.sum(); {BACK}",
    "b = conv.bias.data.view(2, 6); b[:, 4] += 1; self.m[0].bias = nn.Parameter(b.view(-1))",
]


def _program(lines: str) -> str:
    return PROGRAM.replace("LINES", lines.replace("; ", "\n            "))


@pytest.mark.parametrize("lines", LINES)
def test_biases_of_a_head(lines: str) -> None:
    told, theirs, ours = sides(HEADER + _program(lines))
    assert not told
    for mine, other in zip(ours["M"](rngs=nnx.Rngs(0))(1), theirs["M"]()(1), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), other.detach().numpy())


@pytest.mark.parametrize("lines", OTHERS)
def test_what_is_read_otherwise(lines: str) -> None:
    assert "MUT001" in rules_of(_program(lines))


def test_an_item_that_a_method_gives_a_list() -> None:
    source = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.grids = [torch.zeros(1)] * 2

    def grid(self, k, n):
        grid = self.grids[k]
        if grid.shape[0] != n:
            grid = torch.arange(n) * (k + 1.0)
            self.grids[k] = grid
        return grid

    def forward(self, x):
        found = []
        for k in range(2):
            grid = self.grid(k, x.shape[1])
            found.append(grid[1:])
            found.append(self.grids[0][:3])
        return x[:, :3] + torch.stack(found).sum(0)
"""
    told, theirs, ours = sides(HEADER + source)
    assert not told
    model, port, x = theirs["M"](), ours["M"](rngs=nnx.Rngs(0)), np.ones((2, 4), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(port(x), model(theirs["torch"].tensor(x)))
