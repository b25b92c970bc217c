"""``torch.jit._unwrap_optional``, ``torch.jit.annotate``: what torch's compiler is told of a value, which stays."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
from typing import List, Optional


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(4, 4))
        self.b: Optional[torch.Tensor] = None

    def run(self, x, b: Optional[torch.Tensor] = None):
        {lines}

    def forward(self, x):
        return self.run(x, x)
"""


def _source(lines: str) -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "))


@pytest.mark.parametrize(
    "lines",
    [
        "w = torch.jit._unwrap_optional(self.w); return F.linear(x, w)",
        "a, c = torch.jit._unwrap_optional(self.w).chunk(2); return x @ a.t() + x @ c.t()",
        "if b is not None:; \tx = x + torch.jit._unwrap_optional(b); return x * self.w[0]",
        "n = torch.jit._unwrap_optional(x.shape)[0]; return x * n * self.w[0]",
        "y = x * 2; u = torch.jit._unwrap_optional(y); u[0] = 1; return u * self.w[0]",
        "n = torch.jit.annotate(List[int], []); n.append(2); return x * n[0] * self.w[0]",
    ],
)
def test_the_value_stays(lines: str) -> None:
    assert "jit" not in check(_source(lines.replace("\t", "    ")))


@pytest.mark.parametrize("told", ["_unwrap_optional(y)", "annotate(torch.Tensor, y)"])
def test_the_result_is_the_same_memory(told: str) -> None:
    lines = f"y = x * 2; u = torch.jit.{told}; u[0] = 1; return y * self.w[0]"
    assert rules_of(_source(lines)) == ["MUT001"]
