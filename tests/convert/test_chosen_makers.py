"""``nn.Parameter if learnable else Variable``, which is called later."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
from torch.autograd import Variable


class M(nn.Module):
    def __init__(self, learnable):
        super().__init__()
        self.learnable = learnable
        {lines}

    def forward(self, x):
        return x + self.w
"""


def _source(lines: str) -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "))


@pytest.mark.parametrize(
    "lines",
    [
        "W = nn.Parameter if learnable else Variable; self.w = W(torch.ones(4))",
        "W = nn.Parameter if self.learnable else Variable; self.w = W(torch.ones(4))",
        "W = torch.nn.Parameter if learnable else torch.autograd.Variable; self.w = W(torch.ones(4) * 2)",
        "self.w = (nn.Parameter if learnable else Variable)(torch.ones(4))",
        "W = nn.Parameter if learnable else Variable; self.v = W(torch.ones(4)); self.w = W(self.v * 2)",
        "W = nn.Parameter if learnable else torch.tensor; self.w = W(torch.ones(4))",
    ],
)
def test_each_is_called_where_it_is_chosen(lines: str) -> None:
    for learnable in (True, False):
        check(_source(lines), learnable)


@pytest.mark.parametrize(
    "lines",
    [
        "W = Variable if learnable is None else nn.Parameter; self.w = W(torch.ones(4))",
        "W = nn.Parameter if learnable else Variable; learnable = 2; self.w = W(torch.ones(4))",
        "W = Variable; W = W if learnable else nn.Parameter; self.w = W(torch.ones(4))",
        "W = Variable; self.w = W(torch.ones(4)) if learnable else None",
    ],
)
def test_others_are_named(lines: str) -> None:
    assert rules_of(_source(lines)) == ["API001"]


def test_a_class_that_is_only_asked_for() -> None:
    lines = "T = Variable; self.w = nn.Parameter(torch.ones(4)); self.n = isinstance(self.w, T)"
    check(_source(lines), True)
    check(_source("self.w = torch.ones(4) if isinstance(learnable, Variable) else 2"), True)
