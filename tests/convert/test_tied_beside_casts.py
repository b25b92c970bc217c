"""An output layer tied to an embedding in a file that casts tensors by ``x.type(…)``."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.convert.tools import both, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7)
        self.out.weight = self.emb.weight
        {line}

    def forward(self, i):
        return self.out(self.emb(i)) * (i > 2)[..., None].type(torch.FloatTensor)
"""


def test_a_cast_asks_for_no_class() -> None:
    module, port, _ = both(SOURCE.format(line="self.m = torch.zeros(3).type(torch.FloatTensor)"))
    i = torch.tensor([[1, 3], [6, 0]])
    np.testing.assert_allclose(port(i.numpy()), module(i).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "for m in self.modules():\n            if type(m) == nn.Linear:\n                m.bias.data.zero_()",
        "self.kinds = [type(m) for m in (self.emb, self.out)]",
    ],
)
def test_what_asks_stays_a_finding(line: str) -> None:
    assert rules_of(SOURCE.format(line=line))
