"""``setattr(net, name, nn.Identity())``: which children may be in the place of another, by whose they are."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

PROGRAM = """class Block(nn.Module):
    def __init__(self):
        super().__init__()
        BLOCK

    def forward(self, x):
        y = CALL
        y += 1
        return y + x


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.last = "b"

    def forward(self, x):
        return self.b(self.a(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.base = MADE
        name = "b" if self.training else "0"
        setattr(self.base, NAME, nn.Dropout(0.0))

    def forward(self, x):
        return self.block(x) + self.base(x)
"""
FC = ("self.fc = nn.Linear(4, 4)", "self.fc(x)")
BY_NAME = ("setattr(self, 'fc%d' % 0, nn.Linear(4, 4))", "self.fc0(x)")
NAMED = "nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))"


def _program(block: tuple[str, str], made: str, name: str) -> str:
    text = PROGRAM.replace("BLOCK", block[0]).replace("CALL", block[1])
    return text.replace("MADE", made).replace("NAME", name)


@pytest.mark.parametrize(("made", "name"), [("Other()", "self.base.last"), (NAMED, "'0'")])
def test_another_modules_children_are_left_alone(made: str, name: str) -> None:
    check(_program(FC, made, name))


@pytest.mark.parametrize(
    ("block", "made", "name"),
    [
        (FC, "Block()", "name"),
        (("self.b = nn.Linear(4, 4)", "self.b(x)"), "Other()", "name"),
        (BY_NAME, "Block()", "name"),
        (("self.s = nn.Sequential(nn.Linear(4, 4))", "self.s(x)"), NAMED, "name"),
    ],
)
def test_what_may_be_put_in_its_place(block: tuple[str, str], made: str, name: str) -> None:
    assert "MUT001" in rules_of(_program(block, made, name))
