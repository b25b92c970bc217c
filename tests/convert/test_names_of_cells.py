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


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ('cell="GRU"', "self.layer = getattr(nn, cell)(4, 5)"),
        ("cell", "self.rnn = getattr(nn, cell)(4, 5); self.layer = self.rnn"),
    ],
)
def test_a_recurrent_layer_by_what_its_name_is_or_becomes(given: str, made: str) -> None:
    source = (
        _source(made)
        .replace("kind", given)
        .replace("return self.layer(x)", "return self.layer(x)[0]")
    )
    for cell in ("GRU", "LSTM", "RNN"):
        check(source, cell)


def test_a_default_that_is_no_recurrent_layer() -> None:
    source = _source("self.rnn = getattr(nn, cell)(4, 5); self.layer = self.rnn")
    assert rules_of(source.replace("kind", 'cell="Linear"'))


def test_a_name_with_two_holes_and_one_that_is_used_again() -> None:
    lines = "name = '{}Norm{}d'.format(kind.capitalize(), 1); layer = getattr(nn, name); first = layer(4); "
    lines += "name = f'Dropout{len(kind) // 5}d'; drop = getattr(nn, name)(0.1); "
    lines += "name = '{}Pool{}d'.format('Max'.capitalize(), 1); pool = getattr(nn, name)(2); "
    lines += "self.layer = nn.Sequential(first, drop, pool)"
    check(_source(lines), "batch")
