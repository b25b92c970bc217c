"""libcst's nodes are built, copied and placed as libcst itself does it, only faster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from migrator.nodes import copier
from migrator.source import Source
from migrator.syntax import walk

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
MADE = """
import json, sys
import libcst as cst
{}
print(json.dumps([repr(cst.parse_module(text)) for text in json.load(sys.stdin)]))
"""


def test_the_parser_builds_the_same_nodes() -> None:
    texts = json.dumps([path.read_text() for path in SAMPLES[:4]])
    made = [
        subprocess.run(
            [sys.executable, "-c", MADE.format(line)],
            input=texts,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for line in ("", "import migrator.nodes")
    ]
    assert made[0] == made[1]


def test_defaults_are_made_anew_for_each_node() -> None:
    one, other = cst.Arg(cst.Name("x")), cst.Arg(cst.Name("x"))
    assert one.deep_equals(other)
    assert one.whitespace_after_star is not other.whitespace_after_star
    assert cst.Module([cst.SimpleStatementLine([cst.Pass()])]).code == "pass\n"


@pytest.mark.parametrize(
    "make",
    [
        lambda: cst.Name(""),
        lambda: cst.Name("x", lpar=[cst.LeftParen()]),
        lambda: cst.Return(cst.Name("x"), whitespace_after_return=cst.SimpleWhitespace("")),
    ],
)
def test_nodes_made_by_hand_are_checked(make: object) -> None:
    with pytest.raises(cst.CSTValidationError):
        make()  # type: ignore[operator]


def test_a_copy_has_all_fields() -> None:
    for node in walk(cst.parse_module(SAMPLES[0].read_text())):
        made = copier(type(node))(node)
        assert made is not node
        assert all(getattr(made, name) is getattr(node, name) for name in node.__slots__)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_lines_stand_where_libcst_says(path: Path) -> None:
    text = path.read_text() + "\n\nif a:\n    b = 1; c = (2,\n        3)\nd = é, 1; e = f\n"
    source = Source(text)
    lines = [node for node in source.index.nodes if isinstance(node, cst.SimpleStatementLine)]
    places = MetadataWrapper(source.tree, unsafe_skip_copy=True).resolve(PositionProvider)
    for node in lines[:-4]:  # the last ones were split: they stand in a line of their own there
        place, span = places[node], source.span(node)
        assert (place.start.line, place.start.column + 1) == (span.line, span.column)
        assert (place.end.line, place.end.column) == (span.end_line, span.end_column - 1)
    ends = [(s.line, s.column, s.end_line, s.end_column) for s in map(source.span, lines[-4:])]
    last = text.count("\n")
    assert ends == [
        (last - 2, 5, last - 2, 10),
        (last - 2, 12, last - 1, 11),
        (last, 1, last, 9),
        (last, 11, last, 16),
    ]
