"""Sums that a module keeps for quantisation, and assertions on what autograd records."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert, rules_of

SOURCE = """\
class Unit(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.conv = nn.Linear(n, n)
        self.skip_add = {made}

    def forward(self, x):
        return self.skip_add.{call}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.unit = Unit(4)

    def forward(self, x):
        return self.unit(x)
"""


@pytest.mark.parametrize(
    "made",
    ["nn.quantized.FloatFunctional()", "torch.ao.nn.quantized.FloatFunctional()"],
)
@pytest.mark.parametrize(
    "call",
    [
        "add(self.conv(x), x)",
        "mul(self.conv(x), x)",
        "add_scalar(self.conv(x), 2.0)",
        "mul_scalar(self.conv(x), 2.0)",
        "add_relu(self.conv(x), x)",
        "cat([self.conv(x), x], dim=1)",
        "matmul(self.conv(x), x.t())",
    ],
)
def test_they_are_functions_of_torchs(made: str, call: str) -> None:
    code = check(SOURCE.format(made=made, call=call))
    assert "skip_add" not in code


def test_what_else_is_asked_of_them_is_told() -> None:
    call = "activation_post_process(x)"
    assert rules_of(SOURCE.format(made="nn.quantized.FloatFunctional()", call=call))


def test_assertions_on_what_autograd_records_go() -> None:
    source = """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def loss(self, y, target):
        assert (target.requires_grad is False)
        assert not target.requires_grad, "a constant"
        return (y - target) ** 2

    def forward(self, x):
        return self.loss(self.l(x), x.detach())
"""
    assert "assert" not in check(source)
    assert any(one.rule == "TRC011" for one in convert(source).findings)
    asked = source.replace(
        'assert not target.requires_grad, "a constant"',
        "y = y * (2 if target.requires_grad else 1)",
    )
    assert "API002" in rules_of(asked)
