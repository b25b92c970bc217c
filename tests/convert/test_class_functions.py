"""Functions in the body of a class that get no instance, without ``@staticmethod``."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, loaded

SOURCE = """
import torch
from torch import nn

class Util:
    def std(x):
        return x.std(0)

    def tile(x, times=2):
        return x.repeat(times).view(-1)[: x.size(0)]

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def masked(y, value):
        return y.masked_fill(y > 0, value)

    def own(this, y):
        return this.l(y).repeat(1, 1)

    def forward(self, x):
        y = self.l(x)
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return y / Util.std(y)",
        "return y + Util.tile(y[0])",
        "return M.masked(y, 0.0)",
        "return self.__class__.masked(y, 0.0) + type(self).masked(y, 1.0)",
        "return self.own(y)",
    ],
)
def test_what_is_called_through_its_class(line: str) -> None:
    check(SOURCE.format(line=line))


def test_it_is_said_to_be_static() -> None:
    code = loaded(SOURCE.format(line="return M.masked(y, 0.0) / Util.std(y)"))[2]
    assert "@staticmethod\n    def std(x):" in code
    assert "@staticmethod\n    def masked(y, value):" in code
    assert "@staticmethod\n    def own(" not in code


@pytest.mark.parametrize(
    "made",
    [
        "self.kind = Kind.WIDE; self.part = self.kind.layer()",
        "self.part = Kind.WIDE.layer()",
        "self.part = [one.layer() for one in Kind][0]",
    ],
)
@pytest.mark.parametrize("base", ["Enum", "str, Enum", "enum.StrEnum"])
def test_parts_made_by_a_method_of_an_enumeration(made: str, base: str) -> None:
    lines = "".join(f"        {line}\n" for line in made.split("; "))
    check(
        "import enum\nfrom enum import Enum\n\n\n"
        f"class Kind({base}):\n"
        '    WIDE = "wide"\n    NONE = "none"\n\n'
        "    def layer(self):\n"
        "        return nn.Linear(4, 4) if self is Kind.WIDE else nn.Identity()\n\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"{lines}\n    def forward(self, x):\n        return self.part(x)\n"
    )
