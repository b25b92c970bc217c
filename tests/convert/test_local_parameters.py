"""Parameters that have a local name while functions of the file initialise them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from flax import nnx

import migrator
from migrator.convert import convert_source
from tests.convert.tools import HEADER

WRITERS = {
    "init": "def f(w):\n    nn.init.normal_(w)\n",
    "data": "def f(w):\n    w.data.normal_(0, 1)\n",
    "no_grad": "def f(w):\n    with torch.no_grad():\n        w.normal_(0, 1)\n",
    "back": "def f(w):\n    w.data.uniform_(0.5, 1)\n    return w\n",
    "copy": "def f(w):\n    with torch.no_grad():\n        w.copy_(torch.ones_like(w) * 2)\n",
    "items": "def f(w):\n    w.data[0] = 1.0\n    w.data[1:].fill_(2.0)\n",
}
MADE = "nn.Parameter(torch.zeros(n, 1))"
USES = {
    "local": f"w = {MADE}; f(w); self.w = w",
    "attribute": f"self.w = {MADE}; f(self.w)",
    "registered": f'w = {MADE}; f(w); self.register_parameter("w", w)',
    "several": f"w, b = {MADE}, {MADE}; f(w); f(b); self.w, self.b = w, b",
    "of a function": "self.w = make(n)",
    "perhaps": f"w = {MADE} if n > 2 else None; f(w); self.w = w",
    "chained": f"self.w = w = {MADE}; f(w)",
    "kept first": f"w = {MADE}; self.w = w; f(w)",
    "second name": f"self.w = {MADE}; w = self.w; f(w)",
    "in a method": f"w = {MADE}; self.init(w); self.w = w",
    "plain": "w = torch.zeros(n, 1); f(w); self.w = nn.Parameter(w)",
}
MAKE = """
def make(n):
    w = nn.Parameter(torch.zeros(n, 1))
    f(w)
    return w
"""
INIT = """
    def init(self, w):
        f(w)
"""
SOURCE = """{writer}{make}

class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        {lines}
{init}
    def forward(self, x):
        return x @ self.w
"""


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("use", USES)
def test_they_are_parameters_and_initialised_or_refused(writer: str, use: str) -> None:
    source = HEADER + SOURCE.format(
        writer=WRITERS[writer],
        lines=USES[use],
        make=MAKE if use == "of a function" else "",
        init=INIT if use == "in a method" else "",
    )
    result = convert_source(source)
    if any(one.blocks for one in result.findings):
        assert use not in ("local", "attribute", "registered", "of a function", "plain")
        return
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    exec(source, theirs)
    exec(result.code, ours)
    takes = "rngs" in inspect.signature(ours["M"].__init__).parameters
    port = ours["M"](**({"rngs": nnx.Rngs(0)} if takes else {}))
    found = migrator.to_state_dict(port)
    assert set(found) == set(theirs["M"]().state_dict())
    assert all(np.abs(one).max() > 0 for one in found.values())
