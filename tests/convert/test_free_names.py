"""Functions within functions that write to what the code around them has, under a name of their own."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = torch.tanh(x)
        xs = [x * 1]
        layer = self.fc

        def go(flag=True):
            BODY

        return go() + x + xs[0]
"""


@pytest.mark.parametrize(
    "body",
    [
        "y = x\n            y += 1\n            return y",
        "y = x[0]\n            y.mul_(2)\n            return y",
        "y = xs[0]\n            y += 1\n            return y",
        "y = x if flag else x * 2\n            y[0] = 1\n            return y",
        "y = x\n            if flag:\n                y += 1\n            else:\n                return x * 2\n            return y",
    ],
)
def test_what_is_written_under_another_name_is_told(body: str) -> None:
    assert any(rule.startswith("MUT") for rule in rules_of(NET.replace("BODY", body)))


@pytest.mark.parametrize(
    "body",
    [
        "y = x * 2\n            y += 1\n            return y",
        "y = layer(x)\n            y += 1\n            return y",
        "y = self.fc(x)\n            y.mul_(2)\n            return y",
        "x = torch.ones(3, 4)\n            y = x\n            y += 1\n            return y",
        "y = x\n            y = y + 1\n            return y",
    ],
)
def test_what_the_function_makes_is_its_own(body: str) -> None:
    check(NET.replace("BODY", body))
