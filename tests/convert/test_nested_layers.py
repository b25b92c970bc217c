"""Layers in containers within a plain container, which torch neither trains nor saves."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
from collections import OrderedDict, defaultdict


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        {lines}

    def forward(self, x):
        return self.l(x) * {value}
"""


def _source(lines: str, value: str = "2") -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "), value=value)


@pytest.mark.parametrize(
    "lines",
    [
        "self.nets = defaultdict(dict); self.nets['a']['b'] = nn.Linear(4, 4)",
        "self.nets = defaultdict(list); self.nets['a'].append(nn.Linear(4, 4))",
        "self.nets = {}; self.nets['a'] = {}; self.nets['a']['b'] = nn.Linear(4, 4)",
        "self.nets = {'a': {}}; self.nets['a'].update({'b': nn.Linear(4, 4)})",
        "self.nets = {}; self.nets.setdefault('a', {})['b'] = nn.Linear(4, 4)",
        "self.nets = [[], []]; self.nets[0].append(nn.Linear(4, 4))",
        "table = {}; table['a'] = nn.Linear(4, 4); self.nets = {'x': table}",
        "table = {}; table['a'] = nn.Linear(4, 4); self.nets = {}; self.nets['x'] = table",
        "self.nets = OrderedDict(); self.nets['a'] = OrderedDict([('b', nn.Linear(4, 4))])",
        "self.nets = {'a': {'b': nn.Linear(4, 4)}}",
    ],
)
def test_a_layer_within_is_named(lines: str) -> None:
    assert rules_of(_source(lines)) == ["API008"]


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("self.n = {}; self.n['a'] = {}; self.n['a']['b'] = 3", "self.n['a']['b']"),
        ("self.n = defaultdict(dict); self.n['a']['b'] = 3", "self.n['a']['b']"),
        ("self.n = [[], []]; self.n[0].append(nn.ReLU())", "self.n[0][0](x)"),
        (
            "self.n = nn.ModuleDict(); self.n['a'] = nn.ModuleList(); self.n['a'].append(self.l)",
            "self.n['a'][0](x)",
        ),
        (
            "n = []; n.append(nn.ModuleList()); n[-1].append(nn.Linear(4, 4)); self.n = nn.ModuleList(n)",
            "self.n[0][0](x)",
        ),
    ],
)
def test_others_are_not(lines: str, value: str) -> None:
    check(_source(lines, value))
