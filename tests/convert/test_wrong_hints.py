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


@pytest.mark.parametrize("hint", ["Tuple[()]", "Dict[()]", "List[()]", "Optional[()]", "Union[()]"])
def test_a_hint_of_nothing_tells_nothing(hint: str) -> None:
    source = (
        f"from typing import *\n\n\ndef f(x: torch.Tensor):\n    a: {hint} = ()\n    return x + 1\n"
    )
    assert not rules_of(source)


def test_a_method_of_another_form_of_the_same_name() -> None:
    source = """
    class M(nn.Module):
        def register_parameter(self, name, parameter):
            super().register_parameter(name, parameter)

    class A(M):
        def __init__(self):
            super().__init__()
            self.register_parameter(name="x", parameter=nn.Parameter(torch.zeros(3)))
    """
    assert rules_of(source) == ["API001", "API002"]
