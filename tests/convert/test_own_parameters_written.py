"""Parameters of own layers that ``_init_weights`` writes: of one of several classes, and where a number may stand instead."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import convert

SOURCE = """
import torch
from torch import nn

class A(nn.Module):
    def __init__(self, use):
        super().__init__()
        self.tok = nn.Parameter(torch.ones(1, 3))
        self.g = 1.0
        if use:
            self.g = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x + self.tok * self.g

class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Parameter(torch.ones(1, 3))

    def forward(self, x):
        return x * self.tok

class Net(nn.Module):
    def __init__(self, use=True):
        super().__init__()
        self.a, self.b = A(use), B()
        self.use = use
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (A, B)):
            module.tok.data.fill_(2.0)
        if isinstance(module, A) and self.use:
            module.g.data.fill_(3.0)

    def forward(self, x):
        return self.b(self.a(x))
"""


@pytest.mark.parametrize("use", [True, False])
def test_they_are_written(use: bool) -> None:
    done = convert(SOURCE)
    assert done.complete, done.findings
    theirs: dict = {}
    ours: dict = {}
    exec(SOURCE, theirs)
    exec(done.code, ours)
    model, port = theirs["Net"](use), ours["Net"](use, rngs=nnx.Rngs(0))
    for name, parameter in model.named_parameters():
        held = port
        for part in name.split("."):
            held = getattr(held, part)
        np.testing.assert_array_equal(held[...], parameter.detach().numpy())
    assert (port.a.g == 1.0) is not use or use


@pytest.mark.parametrize(
    "more",
    [
        "self.tok = torch.ones(1, 3)",  # a plain tensor there
        "self.register_buffer('tok', torch.ones(1, 3))",
    ],
)
def test_what_is_no_parameter_in_one_of_them_is_a_finding(more: str) -> None:
    place = SOURCE.index("class B")
    changed = SOURCE[place:].replace("self.tok = nn.Parameter(torch.ones(1, 3))", more)
    found = [f.rule for f in convert(SOURCE[:place] + changed).findings if f.blocks]
    assert found


def test_data_that_is_replaced_of_one_of_several_classes_is_a_finding() -> None:
    changed = SOURCE.replace("module.tok.data.fill_(2.0)", "module.tok.data = torch.zeros(1, 3)")
    assert {f.rule for f in convert(changed).findings if f.blocks} == {"MUT001"}
