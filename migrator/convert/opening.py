"""A suite without the ``if``, ``with`` or ``try`` around it."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter


def opened(
    rw: Rewriter, node: cst.With | cst.If | cst.Try, suite: cst.BaseSuite | None = None
) -> list[cst.BaseStatement]:
    """The body, or another suite, without the ``with`` or ``if`` around it."""
    suite = node.body if suite is None else suite
    statements = (
        [cst.SimpleStatementLine(suite.body)]
        if isinstance(suite, cst.SimpleStatementSuite)
        else list(suite.body)
    )
    body = rw.body([s for s in statements if not _is_pass(s)])  # type: ignore[misc]
    comments = [line for line in node.leading_lines if line.comment is not None]
    blank = [line for line in node.leading_lines if line.comment is None][:1]
    if body and hasattr(body[0], "leading_lines"):
        body[0] = syntax.changed(
            body[0],
            leading_lines=[*blank, *comments, *[x for x in body[0].leading_lines if x.comment]],
        )
    return body


def _is_pass(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(small, cst.Pass) for small in node.body
    )
