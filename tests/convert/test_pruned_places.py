"""Masks of ones that leave out places which Python knows."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

PROGRAM = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.pruned = set()
        MORE

    def forward(self, x, mask=None):
        y = self.fc(x)
        if mask is not None:
            y = y + mask
        if self.pruned:
            mask = torch.ones(y.shape[1])
            mask[list(self.pruned)] = 0
            y = y[:, mask.bool()]
        return y
"""


@pytest.mark.parametrize("more", ["pass", "self.pruned.add(1)", "self.pruned |= {0, -1}"])
def test_heads_that_are_pruned(more: str) -> None:
    check(PROGRAM.replace("MORE", more))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return y", "return y if mask is None else y * mask.mean()"),
        ("y = y[:, mask.bool()]", "y = y[:, mask.bool()] * mask.sum()"),
        ("torch.ones(y.shape[1])", "torch.ones(int(y.shape[1]))"),
    ],
)
def test_a_mask_that_is_read_otherwise(old: str, new: str) -> None:
    assert "DYN001" in rules_of(PROGRAM.replace("MORE", "pass").replace(old, new))
