"""Lists of layers that are there by choice, and filled by the same choice in the next line.

``self.lin = nn.ModuleList() if many else nn.Linear(4, 4)`` before ``if many: …`` says in two statements what an ``if``
with an ``else`` says in one.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_statements

_CHOSEN = re.compile(r"= *nn\.(?:ModuleList|ModuleDict)\([^\n]*\) if \S+ else ")


def in_one(tree: cst.Module, text: str) -> cst.Module:
    """A file that chooses once between a list of layers, which it fills, and a layer."""
    if not _CHOSEN.search(text):
        return tree
    return with_statements(
        tree, lambda node: _block(node) if isinstance(node, cst.IndentedBlock) else node
    )


def _block(block: cst.IndentedBlock) -> cst.IndentedBlock:
    lines: list[Any] = []
    for line in block.body:
        joined = _joined(lines[-1], line) if lines else None
        if joined is not None:
            lines[-1] = joined
        else:
            lines.append(line)
    return syntax.changed(block, body=lines) if len(lines) != len(block.body) else block


def _joined(first: Any, second: Any) -> cst.If | None:
    """Both statements in one; None where they do not go by the same question."""
    match first:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    [cst.AssignTarget(cst.Attribute(cst.Name("self")) as target)],
                    cst.IfExp(test=test, body=cst.Call(), orelse=other) as value,
                )
            ]
        ):
            pass
        case _:
            return None
    if not isinstance(second, cst.If) or not isinstance(test, (cst.Name, cst.Attribute)):
        return None
    if not second.test.deep_equals(test) or isinstance(second.orelse, cst.If):
        return None
    if not isinstance(second.body, cst.IndentedBlock):
        return None
    yes, no = (_given(first, target, one) for one in (value.body, other))
    rest = second.orelse.body.body if second.orelse is not None else ()
    body = syntax.changed(second.body, body=[yes, *second.body.body])
    orelse = cst.Else(cst.IndentedBlock([syntax.changed(no, leading_lines=[]), *rest]))
    leading = [*first.leading_lines, *second.leading_lines]
    return syntax.changed(second, body=body, orelse=orelse, leading_lines=leading)


def _given(line: Any, target: cst.Attribute, value: cst.BaseExpression) -> Any:
    """``self.lin = nn.ModuleList()``, as a line of its own."""
    assign = cst.Assign([cst.AssignTarget(target.deep_clone())], syntax.unparenthesized(value))
    return syntax.changed(line, body=[assign], leading_lines=[])
