"""Containers of parameters that are given those of layers, and parameters that have a name of their own."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        {lines}

    def forward(self, x):
        return {value}
"""


def _source(lines: str, value: str) -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "), value=value)


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        ("self.ws = nn.ParameterDict({'a': nn.Linear(4, 5).weight})", "x @ self.ws['a'].t()"),
        (
            "l = nn.Linear(4, 5); self.ws = nn.ParameterDict({'a': l.weight, 'b': l.bias})",
            "x @ self.ws['a'].t() + self.ws['b']",
        ),
        (
            "l = nn.Linear(4, 5); self.ws = nn.ParameterList([l.weight, l.bias])",
            "x @ self.ws[0].t() + self.ws[1]",
        ),
        (
            "l = nn.Linear(4, 5); self.ws = nn.ParameterList(); self.ws.extend([l.weight, l.bias])",
            "x @ self.ws[0].t() + self.ws[1]",
        ),
        (
            "self.ws = nn.ParameterDict({k: nn.Linear(4, 5).weight for k in 'ab'})",
            "x @ self.ws['a'].t() + x @ self.ws['b'].t()",
        ),
        ("l = nn.Linear(4, 5); self.w = l.weight; self.b = l.bias", "x @ self.w.t() + self.b"),
        (
            "self.w = nn.Parameter(torch.rand(4)); self.ws = nn.ParameterList([self.w])",
            "x * self.w + self.ws[0]",
        ),
        (
            "w = nn.Parameter(torch.rand(4)); self.w = w; self.ws = nn.ParameterList([w])",
            "x * self.w + self.ws[0]",
        ),
        (
            "self.l = nn.LayerNorm(4); self.ws = nn.ParameterDict({'a': self.l.weight})",
            "self.l(x) * self.ws['a']",
        ),
        (
            "self.ws = nn.ParameterList([torch.ones(4), nn.Parameter(torch.rand(4))])",
            "x * self.ws[0] + self.ws[1]",
        ),
        (
            "ps = [nn.Parameter(torch.rand(4)) for _ in range(2)]; self.ws = nn.ParameterList(ps)",
            "x * self.ws[0] + self.ws[1]",
        ),
        (
            "l = nn.Linear(4, 4); self.ws = nn.ParameterDict({'a': l.weight.data.clone()})",
            "x @ self.ws['a'].t()",
        ),
    ],
)
def test_what_a_container_is_given_is_there_once(lines: str, value: str) -> None:
    check(_source(lines, value))


@pytest.mark.parametrize(
    "lines",
    [
        "self.l = nn.Linear(4, 5); self.ws = nn.ParameterList([self.l.weight])",
        "self.l = nn.Linear(4, 5); self.ws = nn.ParameterList(self.l.parameters())",
        "self.l = nn.Linear(4, 5); w = self.l.weight; self.ws = nn.ParameterList([w])",
        "self.l = nn.Linear(4, 5); ws = list(self.l.parameters()); self.ws = nn.ParameterList(ws)",
        "self.l = nn.Linear(4, 5); self.ws = nn.ParameterList(); self.ws.append(self.l.weight)",
        "l = nn.Linear(4, 5); self.v = nn.Parameter(l.weight); self.ws = nn.ParameterList([l.weight])",
    ],
)
def test_weights_in_another_layout_are_named(lines: str) -> None:
    assert rules_of(_source(lines, "x @ self.ws[0].t()"))


def test_weights_of_one_layer_share_nothing() -> None:
    lines = "l = nn.Linear(4, 5); self.w = nn.Parameter(l.weight); self.b = nn.Parameter(l.bias)"
    check(_source(lines, "x @ self.w.t() + self.b"))
    lines = "l = nn.Linear(4, 4); self.w = nn.Parameter(l.weight); self.b = nn.Parameter(l.weight)"
    assert rules_of(_source(lines, "x @ self.w.t() + self.b[0]")) == ["MUT001"]
