"""Values that the hints call numbers and the code uses as only tensors can be."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

SOURCE = """
from torch import nn


class M(nn.Module):
    def ratio(self, a: {hint}, b: {hint}):
        d = a / b
        {line}
        return d

    def forward(self, x):
        return self.ratio(x, x)
"""


@pytest.mark.parametrize(
    "line",
    [
        "d[d != d] = 0.0",
        "d[d > 1] += 1",
        "d.clamp_(0, 1)",
        "c = d[0] = 1.0",
        "d = d.masked_fill(d != d, 0)",
        "d = d / d.std()",
    ],
)
def test_a_number_by_its_hints_that_is_used_as_a_tensor_is_a_finding(line: str) -> None:
    assert rules_of(SOURCE.format(hint="float", line=line)) == [
        "API005" if line.startswith("d = ") else "MUT002"
    ]


@pytest.mark.parametrize("line", ["d[d != d] = 0.0", "d[d > 1] += 1", "d.clamp_(0, 1)"])
def test_with_right_hints_it_converts(line: str) -> None:
    source = "import torch\n" + SOURCE.format(hint="torch.Tensor", line=line)
    assert rules_of(source) == []


@pytest.mark.parametrize(
    "line", ["d += 1", "d = d.conjugate()", "e = [d]; e[0] = 2.0", "e = {'a': d}; e['a'] += 1"]
)
def test_numbers_that_are_only_computed_with_stay(line: str) -> None:
    assert rules_of(SOURCE.format(hint="float", line=line)) == []
