"""``getattr(nn, kind + "Cell")``: layers by names that are put together from a part that only a run tells."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self, kind):
        super().__init__()
        {lines}

    def forward(self, x):
        return self.layer(x)
"""


def _source(lines: str) -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "))


@pytest.mark.parametrize(
    "lines",
    [
        "self.layer = getattr(nn, kind.upper() + 'Cell')(4, 5)",
        "self.layer = getattr(nn, f'{kind.upper()}Cell')(4, 5)",
        "self.layer = getattr(nn, '%sCell' % kind.upper())(4, 5)",
        "self.layer = getattr(nn, '{}Cell'.format(kind.upper()))(4, 5)",
        "self.layer = getattr(nn, '{}{}'.format(kind.upper(), 'Cell'))(4, 5)",
        "self.rnn_type = kind.upper() + 'Cell'; self.layer = getattr(nn, self.rnn_type)(4, 5)",
        "name = kind.upper() + 'Cell'; self.layer = getattr(nn, name)(4, 5)",
        "cls = getattr(nn, kind.upper() + 'Cell'); self.layer = cls(4, 5)",
        "self.layer = getattr(torch.nn, 'GRUCell' if kind == 'gru' else 'RNNCell')(4, 5)",
    ],
)
def test_cells(lines: str) -> None:
    for kind in ("gru", "rnn"):
        check(_source(lines), kind)


def test_a_number_in_the_middle() -> None:
    lines = "self.layer = nn.Sequential(getattr(nn, 'Conv' + str(kind) + 'd')(3, 3, 1))"
    check(_source(lines), 1)


@pytest.mark.parametrize(
    "lines",
    [
        "self.layer = getattr(nn, kind)(4, 5)",
        "self.layer = getattr(nn, kind + '')(4, 5)",
        "name = kind + 'Cell'; name = name.upper(); self.layer = getattr(nn, name)(4, 5)",
        "name, other = kind + 'Cell', 2; self.layer = getattr(nn, name)(4, 5)",
        "self.layer = getattr(nn, 'GRUCell' if kind == 'gru' else 'Bogus')(4, 5)",
    ],
)
def test_others_are_named(lines: str) -> None:
    assert rules_of(_source(lines))
