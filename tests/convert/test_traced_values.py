"""What works on values outside of jit, and is a finding therefore."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

MODEL = """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}
        self.sizes = {}
        self.rnn = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x, mask, lengths):
        BODY
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return x[mask].prod()", ["DYN001"]),
        ("return x[lengths].mean()", []),
        ("self.cache[0] = x.relu()\n        return self.cache[0]", ["TRC003"]),
        ("self.sizes[0] = 3\n        return x", []),
        (
            "p = pack_padded_sequence(x, lengths.cpu(), True, False)\n"
            "        return pad_packed_sequence(self.rnn(p)[0], True)[0]",
            ["DYN005"],
        ),
        (
            "p = pack_padded_sequence(x, lengths.cpu(), True, False)\n"
            "        return pad_packed_sequence(self.rnn(p)[0], True, total_length=x.size(1))[0]",
            [],
        ),
        (
            "p = pack_padded_sequence(x, [3, 2], True)\n"
            "        return pad_packed_sequence(self.rnn(p)[0], True)[0]",
            [],
        ),
    ],
)
def test_what_needs_values_is_found(body: str, found: list[str]) -> None:
    assert rules_of(MODEL.replace("BODY", body)) == found


def test_the_last_part_of_an_and_is_given_as_it_is() -> None:
    """``first and mask.all()`` is a tensor where first is true: whoever asks for its truth is found."""
    head = (
        "class M(nn.Module):\n    def __init__(self, first: bool = True):\n        super().__init__()\n"
        "        self.first = first\n\n    def forward(self, x, mask: torch.ByteTensor):\n"
        "        a = not self.first and mask[0].all()\n        b = self.first and mask[:, 0].all()\n"
    )
    check = '        if not a and not b:\n            raise ValueError("mask")\n        return x\n'
    assert rules_of(head + check) == []
    assert rules_of(head + "        if a:\n            x = x + 1\n        return x\n") == ["DYN002"]
    assert rules_of(head + "        return x * (not (self.first and x.any()))\n") == ["DYN002"]
    assert rules_of(head + "        return (self.first and x.any()) and x\n") == ["DYN002"]
