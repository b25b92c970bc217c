"""Layers with ``inplace=True`` whose input is read again: it is what the layer made of it."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

HEAD = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x, flag: bool = False):
        out = self.l(x)
"""


def source(*lines: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in lines)


def test_the_input_is_given_the_result() -> None:
    code = check(source("a = self.act(out)", "b = self.l(a)", "return out + 2 * a + b"))
    assert "out = self.act(out)\n        a = out\n" in code


@pytest.mark.parametrize(
    "lines",
    [
        ("a = self.act(out) if flag else 1", "return out, a"),
        ("a = flag and self.act(out)", "return out, a"),
        ("a = [self.act(out) for _ in range(2)]", "return out, a"),
        ("a = self.l(out) + self.act(out)", "return out, a"),
        ("z = out[:2]", "a = self.act(out)", "return out, a, z"),
        ("z = [out]", "a = self.act(out)", "return out, a, z"),
        ("a = self.act(out)", "a += 1", "return out, a"),
        ("f = lambda y: self.act(out) + y", "return out, f(x)"),
    ],
)
def test_where_more_than_that_would_change(lines: tuple[str, ...]) -> None:
    assert {"MUT001", "MUT002"} & set(rules_of(source(*lines)))
