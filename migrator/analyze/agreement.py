"""What ``analyze`` says, held against what ``convert`` does with the same file.

The flag rules look at a file as a whole and say all that stands in the way, several things of one line. Whether that is
an error is for the conversion to say: what it converts is none, and what it leaves in place is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from migrator.analyze.suppress import Suppressions
from migrator.findings import Finding, ordered
from migrator.source import Source

_Lines = tuple[int, int]


def agreed(source: Source, said: Sequence[Finding], left: Sequence[Finding]) -> list[Finding]:
    """The findings of a file.

    Args:
      said: what the flag rules and the tables of names say.
      left: what the conversion reports of the same file.
    """
    refused = [one for one in left if one.blocks]
    if not refused:
        return ordered(one for one in said if not one.blocks)
    statements = _statements(source)
    places = [_around(statements, one) for one in refused]
    kept = [
        one
        for one in said
        if not one.blocks or any(_meets((one.line, one.end_line), place) for place in places)
    ]
    errors = [one for one in kept if one.blocks]
    lines = [(one.line, one.end_line) for one in errors]
    names = {(one.rule, one.message) for one in errors}
    silenced = Suppressions(source)
    more = [
        replace(one, snippet=source.excerpt(one.line))
        for one, place in zip(refused, places, strict=True)
        if (one.rule, one.message) not in names  # the same thing, by another name
        and not any(_meets(told, place) for told in lines)
        and not silenced.within(*place)
    ]
    return ordered([*kept, *dict.fromkeys(more)])


def _meets(one: _Lines, other: _Lines) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _statements(source: Source) -> list[_Lines]:
    """The lines of each statement, a compound one's with its body."""
    found = []
    for node in source.index.of_type(
        cst.SimpleStatementLine,
        cst.If,
        cst.For,
        cst.While,
        cst.With,
        cst.Try,
        cst.FunctionDef,
        cst.ClassDef,
        cst.Match,
    ):
        span = source.span(node)
        found.append((span.line, span.end_line))
    return found


def _around(statements: Sequence[_Lines], finding: Finding) -> _Lines:
    """The lines of the innermost statement that a finding stands in."""
    inside = [one for one in statements if one[0] <= finding.line <= one[1]]
    return min(inside, key=lambda one: one[1] - one[0], default=(finding.line, finding.end_line))
