"""A number that tensors are added to becomes a tensor of its own: who else has that sees what is added next."""

from __future__ import annotations

import pytest

from tests.convert.test_kept_state import agree
from tests.convert.tools import HEADER, sides

PROGRAM = """def parts(x):
    return [x[i] for i in range(3)]


def same(x):
    return x


def zero():
    return 0


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Identity()

    def forward(self, x):
        LINES
"""
BEGINS = [
    "n = 0",
    "n = -1.0",
    "n, c = 0, 1",
    "n = zero()",
    "n = len(x) - 3",
    "n = 0 if self.training else 1",
]
ADDS = ["n += x[0]", "n += same(x)[0]", "n -= same(x[1])", "for t in parts(x): n += t"]
SEEN = [
    "m = n; n += x[1]; return m + n",
    "out = [n]; n *= 2; return out[0] + n",
    "self.k = n; n += same(x)[1]; return self.k + n",
    "m = n[:2]; m += 1; return n * 2",
    "m = n; m += x[2]; return n + x",
    "return n + x",
    "n += x[1]; m = n; return m + n",
]


@pytest.mark.parametrize("seen", SEEN)
def test_who_else_has_what_was_a_number(seen: str) -> None:
    converted = 0
    for begin in BEGINS:
        for adds in ADDS:
            lines = "; ".join([begin, adds, seen]).replace("; ", "\n        ")
            told, theirs, ours = sides(HEADER + PROGRAM.replace("LINES", lines))
            converted += not told and agree(theirs["M"], ours["M"], lines)
    assert converted or seen not in SEEN[-2:]
