"""A Sequential of an OrderedDict: what it does first, where a layer in it works in place."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
from collections import OrderedDict


class M(nn.Module):
    def __init__(self, deep=True):
        super().__init__()
        n = 4
        {made}

    def forward(self, x):
        y = self.s(x)
        return x * y
"""


def _source(made: str) -> str:
    return SOURCE.format(made=made.replace("; ", "\n        ").replace("\t", "    "))


LINEAR, RELU = "nn.Linear(n, n)", "nn.ReLU(inplace=True)"
EMPTY, RUN = "ops = OrderedDict()", "self.s = nn.Sequential(ops)"


@pytest.mark.parametrize(
    "made",
    [
        f"self.s = nn.Sequential(OrderedDict({{'l': {LINEAR}, 'r': {RELU}}}))",
        f"{EMPTY}; ops['l'] = {LINEAR}; ops['r'] = {RELU}; {RUN}",
        f"{EMPTY}; ops['l'] = {LINEAR}; for i in range(2):; \tops[f'r{{i}}'] = {RELU}; {RUN}",
        f"{EMPTY}; for i in range(2):; \tops[f'l{{i}}'] = {LINEAR}; \tops[f'r{{i}}'] = {RELU}; {RUN}",
        f"{EMPTY}; ops['l'] = {LINEAR}; if deep:; \tops['r'] = {RELU}; {RUN}",
        f"ops = OrderedDict({{'l': {LINEAR}, 'r': {RELU}}}); {RUN}",
        f"ops = OrderedDict([('l', {LINEAR})]); ops['r'] = {RELU}; {RUN}",
    ],
)
def test_the_first_layer_does_not_write(made: str) -> None:
    check(_source(made))


@pytest.mark.parametrize(
    "made",
    [
        f"self.s = nn.Sequential(OrderedDict({{'r': {RELU}, 'l': {LINEAR}}}))",
        f"self.s = nn.Sequential(OrderedDict({{'l': {LINEAR}, 'l': {RELU}}}))",
        f"{EMPTY}; ops['r'] = {RELU}; ops['l'] = {LINEAR}; {RUN}",
        f"{EMPTY}; ops['l'] = {LINEAR}; ops['l'] = {RELU}; {RUN}",
        f"{EMPTY}; for i in range(2):; \tops[f'l{{i}}'] = {LINEAR}; \tops[f'l{{i}}'] = {RELU}; {RUN}",
        f"{EMPTY}; ops['l'] = {LINEAR}; ops['r'] = {RELU}; ops.move_to_end('r', last=False); {RUN}",
        f"{EMPTY}; if deep:; \tops['r'] = {RELU}; ops['l'] = {LINEAR}; {RUN}",
        f"{EMPTY}; k = 'l'; ops['l'] = {LINEAR}; ops[k] = {RELU}; {RUN}",
        f"{EMPTY}; ops['l1'] = {LINEAR}; ops[f'l{{n - 3}}'] = {RELU}; {RUN}",
        f"{EMPTY}; ops['l'] = {LINEAR}; ops.update({{'l': {RELU}}}); {RUN}",
        f"ops = OrderedDict({{'r': {RELU}, 'l': {LINEAR}}}); {RUN}",
        f"ops = OrderedDict({{'l': {LINEAR}}}); ops['l'] = {RELU}; {RUN}",
        f"ops = OrderedDict([('l', {LINEAR}), ('r', {RELU})]); ops['l'] = {RELU}; {RUN}",
        f"ops = OrderedDict({{'l': {LINEAR}, 'r': {RELU}}}); del ops['l']; {RUN}",
    ],
)
def test_the_first_layer_may_write(made: str) -> None:
    assert "MUT002" in rules_of(_source(made))
