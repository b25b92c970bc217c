"""``self.attend, self.heads = self._plain, 4``: attributes that are set together, one of which means more than a value."""

from __future__ import annotations

import pytest

from migrator import convert_source
from tests.convert.tools import check, rules_of

NET = """
import torch
from torch import nn


class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.other = nn.Linear(n, n)
{lines}

    def plain(self, x):
        return self.fc(x)

    def chosen(self):
        return self.doubled, 2

    def doubled(self, x):
        return self.fc(x) * 2

    def forward(self, x):
        return {result}
"""


def _net(lines: str, result: str = "self.fc(x) + self.other(x)") -> str:
    body = "\n".join(" " * 8 + line for line in lines.splitlines())
    return NET.format(lines=body, result=result)


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        ("self.go, self.n = self.plain, 3", "self.go(x) * self.n"),
        ("self.n, self.go = 3, self.plain if n > 2 else self.doubled", "self.go(x) * self.n"),
        ("(self.go, self.back) = (self.doubled, self.plain)", "self.go(x) + self.back(x)"),
        ("[self.go, self.n] = [lambda x: x * 3, n]", "self.fc(self.go(x)) * self.n"),
        ("self.fc.bias, self.n = None, 2", "self.fc(x) * self.n"),
        ("self.fc.weight.requires_grad, self.n = False, 2", "self.fc(x) * self.n"),
        ("self.fc.weight, self.fc.bias = self.other.weight, self.other.bias", "self.fc(x)"),
        ("self.fc.bias = self.other.bias = None", "self.fc(x) + self.other(x)"),
        ("self.fc.bias.requires_grad = self.n = False", "self.fc(x) + self.n"),
        ("made = (None, 2)\nself.fc.bias, self.n = made", "self.fc(x) * self.n"),
        ("made = (False, 2)\nself.fc.weight.requires_grad, self.n = made", "self.fc(x) * self.n"),
        ("self.go, act = self.plain, nn.ReLU()\nself.act = act", "self.act(self.go(x))"),
    ],
)
def test_each_is_read_by_itself(lines: str, result: str) -> None:
    """A method that Flax would bind to the module as it was built, a weight that is no longer trained, or missing."""
    check(_net(lines, result))


@pytest.mark.parametrize(
    "lines",
    [
        "self.forward, self.n = self.doubled, 2",
        "self.n, self.forward = 2, lambda x: x * 2",
        "self.plain, self.forward = self.forward, self.plain",
        "self.n, (self.forward, self.m) = 2, (torch.sin, 3)",
        "[self.forward] = [torch.sin]",
        "self.n = self.forward, self.m = torch.sin, 2",
        "self.__dict__['forward'] = torch.sin",
        "object.__setattr__(self, 'forward', torch.sin)",
        "super().__setattr__('forward', torch.sin)",
    ],
)
def test_a_forward_that_is_replaced_among_others(lines: str) -> None:
    """torch calls it; the class of Flax has its own."""
    assert {"API001", "API005"} & set(rules_of(_net(lines)))


@pytest.mark.parametrize(
    ("lines", "rule"),
    [
        ("self.plain, self.doubled = self.doubled, self.plain", "API001"),
        ("self.n, self.go = n, self.plain\nself.m = self\nself.k, self.go = 1, self.plain", ""),
        ("def make():\n    return 1\nself.go, self.n = self.chosen()", "API001"),
    ],
)
def test_what_one_after_the_other_might_change(lines: str, rule: str) -> None:
    found = rules_of(_net(lines, "self.plain(x)"))
    assert rule in found if rule else found


@pytest.mark.parametrize(
    "line", ["self.n, self.m = n, 2", "self.n, self.m = n.real, n.imag", "a, b = self.fc, n"]
)
def test_other_lines_stay_one(line: str) -> None:
    assert line in convert_source(_net(line)).code
