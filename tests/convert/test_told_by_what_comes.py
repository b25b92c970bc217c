"""Attributes that hold a number or a truth before they hold a layer that only a run tells."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert

PARTS = """
class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


class Base(nn.Module):
    def __init__(self, reg=None):
        super().__init__()
        {base}


class Mixed:
    def __init__(self, reg=None, **kwargs):
        self.flag = reg is not None
        super().__init__(**kwargs)
        self.flag = reg


class Part(Base):
    def __init__(self, reg=None, n=2):
        super().__init__()
        {first}
        {then}

    def forward(self, x):
        return x if self.reg is None or self.reg is False else x + self.reg(x)


class Heir(Mixed, Base):
    def forward(self, x):
        return x + self.flag(x)


class M(nn.Module):
    def __init__(self, given):
        super().__init__()
        self.a = Part(Scale() if given else None)
        self.b = Heir(reg=Scale())

    def forward(self, x):
        return self.b(self.a(x))
"""


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize(
    ("base", "first", "then"),
    [
        ("pass", "self.reg = reg is not None", "self.reg = reg"),
        ("pass", "self.reg = n > 2", "self.reg = None if self.reg else reg"),
        ("pass", "self.reg = not n", "self.reg = reg or None"),
        ("pass", "self.reg = n", "self.reg = [reg, reg, reg][self.reg]"),
        ("pass", "self.reg = bool(reg)", "self.reg = reg if self.reg else None"),
        ("self.reg = bool(reg)", "pass", "self.reg = reg"),
        ("self.reg = False", "pass", "self.reg = reg"),
        ("pass", "self.reg = False", "if reg is not None:\n            self.reg = reg"),
    ],
)
def test_it_is_declared_by_what_comes(base: str, first: str, then: str, given: bool) -> None:
    check(PARTS.format(base=base, first=first, then=then), given)


def test_a_plain_class_of_its_own_keeps_what_it_is_given() -> None:
    source = """
class Plain:
    def __init__(self, fn=None):
        self.fn = fn is not None
        self.fn = fn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = Plain(torch.tanh)

    def forward(self, x):
        return self.p.fn(x)
"""
    assert "declared" not in convert(source).code
