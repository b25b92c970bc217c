"""Output layers that are tied to an embedding, and of which more is asked than to be called."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
import torch
import torch.nn.functional as F
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.prj = nn.Linear(4, 7, bias=False)
        {before}
        self.prj.weight = self.emb.weight
        {after}

    def forward(self, x):
        return {forward}
"""


@pytest.mark.parametrize(
    ("before", "after", "forward"),
    [
        ("", "", "self.prj(x)"),
        ("nn.init.xavier_normal_(self.prj.weight)", "", "self.prj(x)"),
        ("self.n = self.prj.weight.numel()", "", "self.prj(x) * self.n"),
        ("", "nn.init.normal_(self.prj.weight)", "self.prj(x)"),
        ("", "", "F.linear(x, self.prj.weight) + self.prj(x)"),
    ],
)
def test_a_tied_head(before: str, after: str, forward: str) -> None:
    check(SOURCE.format(before=before, after=after, forward=forward))


def test_one_that_a_container_holds_too_is_a_finding() -> None:
    source = SOURCE.format(before="self.o = nn.Sequential(self.prj)", after="", forward="self.o(x)")
    assert "API009" in rules_of(source)


def test_one_that_has_another_name_is_a_finding() -> None:
    source = SOURCE.format(before="", after="", forward="self.o(x)")
    made = "head = nn.Linear(4, 7, bias=False); self.prj = head; self.o = nn.Sequential(head)"
    assert "API009" in rules_of(source.replace("self.prj = nn.Linear(4, 7, bias=False)", made))
