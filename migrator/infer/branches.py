"""The branches of an ``if``."""

from __future__ import annotations

import libcst as cst


def has_else(node: cst.If) -> bool:
    """Whether one of the branches is always taken."""
    while isinstance(node.orelse, cst.If):
        node = node.orelse
    return node.orelse is not None


def leaves(body: cst.BaseSuite) -> bool:
    """Whether what follows the ``if`` is not run after a branch."""
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Raise | cst.Return | cst.Continue)


def branches(node: cst.If) -> list[cst.BaseSuite]:
    """The bodies of ``if``, ``elif`` and ``else``."""
    found = [node.body]
    other = node.orelse
    while isinstance(other, cst.If):
        found.append(other.body)
        other = other.orelse
    if other is not None:
        found.append(other.body)
    return found
