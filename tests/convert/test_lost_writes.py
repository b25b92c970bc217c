"""Parameters that a loop hands to a function, for what it writes to them."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import loaded, rules_of

SOURCE = """
def init_(name, p):
    if p.dim() == 1:
        nn.init.constant_(p, 2.0)
    else:
        {init}

class Filler(object):
    def __call__(self, t):
        nn.init.uniform_(t, -1, 1)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 3)
        {lines}

    def forward(self, x):
        return self.l(x)
"""
FILL = "nn.init.constant_(p, 3.0)"


@pytest.mark.parametrize(
    "lines",
    [
        "for n, p in self.named_parameters(): init_(n, p)",
        "for n, p in self.l.named_parameters(): init_(n, p)",
        "for p in self.parameters(): init_('', p)",
    ],
)
def test_what_a_function_writes_stays(lines: str) -> None:
    theirs, ours, _ = loaded(SOURCE.format(init=FILL, lines=lines))
    want, got = theirs["M"]().state_dict(), migrator.to_state_dict(ours["M"](rngs=nnx.Rngs(0)))
    for name, value in want.items():
        np.testing.assert_array_equal(np.asarray(got[name]), value.numpy())


@pytest.mark.parametrize(
    ("init", "lines"),
    [
        ("nn.init.kaiming_uniform_(p)", "for n, p in self.named_parameters(): init_(n, p)"),
        ("p.data[0] = 1.0", "for n, p in self.named_parameters(): init_(n, p)"),
        (FILL, "f = Filler()\n        for p in self.parameters(): f(p)"),
    ],
)
def test_where_it_would_not_it_is_a_finding(init: str, lines: str) -> None:
    assert "MUT003" in rules_of(SOURCE.format(init=init, lines=lines))
