"""Layers with ``inplace=True`` that ``map`` or a list of functions calls: what they are handed is overwritten."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace={inplace})
        self.fc = nn.Linear(4, 4)
        self.fs = [self.act, torch.tanh]

    def forward(self, x):
        x = x + 0.5
{lines}
"""


def _net(lines: str, inplace: bool = True) -> str:
    body = "\n".join(" " * 8 + line.strip() for line in lines.split(";"))
    return NET.format(inplace=inplace, lines=body)


@pytest.mark.parametrize(
    "lines",
    [
        "xs = [x, x - 1]; ys = list(map(self.act, xs)); return xs[0] + ys[1]",
        "y, z = map(self.act, (x, x * 2)); return x + y + z",
        "ys = [f(x) for f in self.fs]; return x + ys[0]",
        "y = 0; z = 0\n        for i, f in enumerate(self.fs):\n            z = z + f(x); return x + z",
    ],
)
def test_what_is_read_again(lines: str) -> None:
    assert {"MUT001", "MUT002"} & set(rules_of(_net(lines)))
    check(_net(lines, inplace=False))


@pytest.mark.parametrize(
    "lines",
    [
        "xs = [x, x - 1]; xs = list(map(self.act, xs)); return xs[0] + xs[1]",
        "y, z = map(self.act, (self.fc(x), self.fc(x * 2))); return x + y + z",
        "return sum(map(self.fc, [x, x + 1])) + x",
    ],
)
def test_what_nobody_reads(lines: str) -> None:
    check(_net(lines))
