"""An argument of a layer given another value through a name that may stand for several: ``m.p = 0.5`` in a walk.

Flax keeps some arguments under other names (``Dropout.rate``, ``LayerNorm.epsilon``) and some nowhere. Written under
torch's name they would change nothing, asked for with ``hasattr`` they would not be there.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.convert.tools import both, rules_of, same

SOURCE = """
class M(nn.Module):
    def __init__(self, some=True):
        super().__init__()
        self.drop = nn.Dropout(0.0) if some else nn.Identity()
        self.norm = nn.LayerNorm(4)
        self.act = nn.ReLU(inplace=True)
        {lines}

    def forward(self, x):
        return self.act(self.norm(self.drop(x)))
"""


@pytest.mark.parametrize(
    "lines",
    [
        "self.drop.p = 1.0",
        "for m in self.modules():\n            if hasattr(m, 'eps'):\n                m.eps = 0.5",
        "for m in self.children():\n            if 'Dropout' in type(m).__name__:\n                m.p = 1.0",
        "for n, m in self.named_modules():\n            if n == 'norm':\n                m.eps = 0.5",
        "for m in [self.drop, self.act]:\n            m.p = 0.5",
    ],
)
def test_a_layer_that_would_not_look_at_it_is_a_finding(lines: str) -> None:
    assert rules_of(SOURCE.format(lines=lines))


@pytest.mark.parametrize(
    "lines",
    [
        "for m in self.modules():\n            if isinstance(m, nn.LayerNorm):\n                m.eps = 0.5",
        "for m in self.modules():\n            if hasattr(m, 'inplace'):\n                m.inplace = False",
        "for m in self.modules():\n            m.momentum = 0.5",
        "self.norm.eps = 0.5",
    ],
)
def test_what_is_known_or_changes_nothing_is_written(lines: str) -> None:
    model, port, _ = both(SOURCE.format(lines=lines), False)
    same(model.eval(), port, torch.linspace(-1, 1, 12).reshape(3, 4).numpy().astype(np.float32))
