"""A module, and in its place what a table makes: that may be a plain function in the output."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
ACTS = {{"relu": nn.ReLU, "none": nn.Identity, "prelu": nn.PReLU}}


class M(nn.Module):
    def __init__(self, act="relu"):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {first}
        if act is not None:
            self.act = {table}
        {last}

    def forward(self, x):
        return self.act(self.fc(x))
"""
FIRST = ["self.act = nn.PReLU()", "self.act = nn.Identity()", "self.act = None", "pass"]
LAST = [
    "pass",
    "self.n = len(list(self.children()))",
    "if act == 'prelu':\n            self.act = nn.PReLU()",
]


@pytest.mark.parametrize("act", ["relu", "none", "prelu"])
@pytest.mark.parametrize("table", ["ACTS[act]()", "dict(ACTS)[act]()"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("last", LAST)
def test_what_a_table_makes_in_the_place_of_a_module(
    first: str, table: str, last: str, act: str
) -> None:
    check(SOURCE.format(first=first, table=table, last=last), act)
