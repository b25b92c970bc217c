"""Lambdas at the top of a file, which run when all of it is defined, and who draws for what they make."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import check, loaded

TABLE = """
OPS = TABLE_OF


class Sep(nn.Module):
    def __init__(self, c, k=1):
        super().__init__()
        self.op = nn.Linear(c, c)
        self.k = k

    def forward(self, x):
        return self.op(x) * self.k


class Zero(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return x * 0.5


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = nn.ModuleList([OPS[key](4, 2) for key in KEYS])

    def forward(self, x):
        return sum(op(x) for op in self.ops)
"""
TABLES = {
    "a dict": ("{'sep': lambda c, k: Sep(c, k), 'zero': lambda c, k: Zero(k)}", "('sep', 'zero')"),
    "a choice": (
        "{'sep': lambda c, k: Zero(k) if k == 1 else Sep(c, k), 'zero': lambda c, k: Zero(k)}",
        "('sep', 'zero')",
    ),
    "a list": ("[lambda c, k: Sep(c, k), lambda c, k: nn.Linear(c, c)]", "(0, 1)"),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("below", [False, True])
def test_a_table_of_functions_that_make_layers(table: str, below: bool) -> None:
    made, keys = TABLES[table]
    source = TABLE.replace("TABLE_OF", made).replace("KEYS", keys)
    if below:
        line = source.strip().split("\n")[0]
        source = source.replace(line, "").replace("class M(", f"{line}\n\n\nclass M(")
    check(source)
    _, ours, _ = loaded(source)
    one, same, other = (ours["M"](rngs=nnx.Rngs(seed)) for seed in (1, 1, 2))
    first, again, third = (np.asarray(m.ops[0].op.kernel[...]) for m in (one, same, other))
    assert (first == again).all()  # who builds the model says what is drawn
    assert (first != third).any()
