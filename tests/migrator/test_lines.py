"""Lines with several statements are read as several lines."""

from __future__ import annotations

import libcst as cst
import pytest

from migrator.lines import split
from migrator.source import Source
from tests.convert.tools import convert, function, rules_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# lead\na = 1; b = 2;  # tail\n", "# lead\na = 1\nb = 2  # tail\n"),
        ("if a:\n  pass\nelif b: x = 1; y = 2\n", "if a:\n  pass\nelif b:\n  x = 1\n  y = 2\n"),
        ("for i in x: f(i)\nelse: g()\n", "for i in x:\n    f(i)\nelse:\n    g()\n"),
        ("try: a()\nexcept E: b()\nfinally: c()\n", None),
        ("match x:\n case 1: b()\n", "match x:\n case 1:\n  b()\n"),
        ("class A:\n  def f(self):\n    with a: b(); c()\n", None),
    ],
)
def test_split(text: str, expected: str | None) -> None:
    made = split(cst.parse_module(text)).code
    assert expected is None or made == expected
    assert ";" not in made
    compile(made, "made", "exec")


@pytest.mark.parametrize("text", ["a = 1\n", "if a: return 1\n", "class A: pass\n", "x = ';'\n"])
def test_what_has_one_statement_stays(text: str) -> None:
    tree = cst.parse_module(text)
    assert split(tree) is tree


def test_places_are_those_of_the_text() -> None:
    text = "def f(x):\n    y = x; y += 1\n    if x: z = y; y -= 1  # now\n    return z\n"
    source = Source(text)
    found = {
        (span.line, span.column)
        for span in map(source.span, source.index.of_type(cst.AugAssign, cst.Return))
    }
    assert found == {(2, 12), (3, 18), (4, 5)}


@pytest.mark.parametrize(
    "line",
    [
        "z = y[0]; y += 1",
        "z = [y]; y.add_(1)",
        "z = y\n    if n: y += 1",
        "z = y\n    for i in range(n): y += 1",
    ],
)
def test_a_write_after_another_statement_is_seen(line: str) -> None:
    source = f"def f(x: torch.Tensor, n: int):\n    y = x * 2\n    {line}\n    return z\n"
    assert rules_of(source) == ["MUT001"]
    apart = source.replace("; ", "\n    ")
    assert convert(apart).complete == convert(source).complete


def test_the_output_has_a_line_each() -> None:
    assert function("a = x + 1; b = torch.sin(a)  # both", "return b") == (
        "a = x + 1\nb = jnp.sin(a)  # both\nreturn b"
    )
