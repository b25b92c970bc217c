"""Line breaks that hang on brackets: an expression without its brackets is put on one line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import libcst as cst

from migrator.syntax import changed, parenthesized
from migrator.writing import code

N = TypeVar("N", bound=cst.CSTNode)


_SPINE: dict[type, tuple[str, ...]] = {
    cst.BinaryOperation: ("left", "operator", "right"),
    cst.BooleanOperation: ("left", "operator", "right"),
    cst.Comparison: ("left", "comparisons"),
    cst.ComparisonTarget: ("operator", "comparator"),
    cst.UnaryOperation: ("operator", "expression"),
    cst.IfExp: (
        *("body", "whitespace_before_if", "whitespace_after_if", "test"),
        *("whitespace_before_else", "whitespace_after_else", "orelse"),
    ),
    cst.Attribute: ("value", "dot"),
    cst.Call: ("func", "whitespace_after_func"),
    cst.Subscript: ("value", "whitespace_after_value"),
    cst.Tuple: ("elements",),
    cst.Element: ("value", "comma"),
    cst.StarredElement: ("value", "comma"),
    cst.Lambda: ("colon", "body"),
    cst.Await: ("whitespace_after_await", "expression"),
    cst.Yield: ("value",),
    cst.NamedExpr: ("whitespace_before_walrus", "whitespace_after_walrus", "value"),
    cst.ConcatenatedString: ("left", "whitespace_between", "right"),
}
"""What of an expression stands in no brackets of its own."""


def is_open(node: Any) -> bool:
    """Whether a line of an expression ends outside of all brackets in it, as of what stood within those of a call."""
    return type(node) in _SPINE and next(_breaks(node), None) is not None


def _breaks(node: Any) -> Iterator[cst.ParenthesizedWhitespace]:
    """Where the lines of an expression break outside of all brackets in it."""
    if getattr(node, "lpar", None):
        return
    for field in _SPINE.get(type(node), ()):
        part = getattr(node, field)
        for one in part if isinstance(part, list | tuple) else (part,):
            kind = type(one)
            if kind is cst.ParenthesizedWhitespace:
                yield one
            elif kind in _SPINE:
                yield from _breaks(one)
            else:
                for space in ("whitespace_before", "whitespace_after"):
                    if type(found := getattr(one, space, None)) is cst.ParenthesizedWhitespace:
                        yield found


def on_one_line(node: N) -> N:
    """The expression on one line, as far as no brackets of its own break it; in parentheses where a comment ends a line."""
    breaks = list(_breaks(node)) if type(node) in _SPINE else ()
    if not breaks:
        return node
    if any("#" in code(one) for one in breaks):
        return parenthesized(node)  # type: ignore[return-value]
    made: N = _joined(node)
    return made


_TIGHT = (cst.Dot, cst.Call, cst.Subscript)


def _joined(node: Any) -> Any:
    if getattr(node, "lpar", None):
        return node
    space = cst.SimpleWhitespace("" if type(node) in _TIGHT else " ")
    changes: dict[str, Any] = {}
    for field in _SPINE.get(type(node), ("whitespace_before", "whitespace_after")):
        part = getattr(node, field, None)
        if isinstance(part, list | tuple):
            changes[field] = [_joined(one) for one in part]
        elif type(part) is cst.ParenthesizedWhitespace:
            changes[field] = space
        elif isinstance(part, cst.CSTNode) and not isinstance(part, cst.SimpleWhitespace):
            inner = type(part) in _SPINE or hasattr(part, "whitespace_after")
            changes[field] = _joined(part) if inner else part
    changes = {field: new for field, new in changes.items() if new is not getattr(node, field)}
    return changed(node, **changes) if changes else node


_HOLDS: dict[type, tuple[str, ...]] = {
    cst.Assign: ("value",),
    cst.AssignTarget: ("target",),
    cst.AnnAssign: ("target", "value"),
    cst.AugAssign: ("target", "value"),
    cst.Return: ("value",),
    cst.Expr: ("value",),
    cst.Assert: ("test", "msg"),
    cst.Raise: ("exc",),
    cst.If: ("test",),
    cst.While: ("test",),
    cst.For: ("iter",),
    cst.Match: ("subject",),
    cst.WithItem: ("item",),
}
"""The expressions that a statement holds in no brackets."""


def closed(statement: N, new: bool = False) -> N:
    """The statement, with expressions on one line whose lines would end it too early.

    Args:
      new: the statements in it have not been looked at either.
    """
    found: dict[str, Any] = {}
    parts = _PARTS.get(type(statement))
    if parts is not None:
        before = getattr(statement, parts)
        after = [closed(one) for one in before]
        if any(a is not b for a, b in zip(before, after, strict=True)):
            found[parts] = after
    if new and type(statement) in _BLOCKS:
        block = statement.body  # type: ignore[attr-defined]
        inner = [closed(one, new) for one in block.body]
        if any(a is not b for a, b in zip(inner, block.body, strict=True)):
            found["body"] = changed(block, body=inner)
        orelse = getattr(statement, "orelse", None)
        if orelse is not None:
            found["orelse"] = closed(orelse, new)
    for field in _HOLDS.get(type(statement), ()):
        value = getattr(statement, field)
        if is_open(value):
            found[field] = on_one_line(value)
    return changed(statement, **found) if found else statement


_BLOCKS = frozenset({cst.For, cst.If, cst.Else, cst.While, cst.With, cst.FunctionDef})
_PARTS = {cst.SimpleStatementLine: "body", cst.Assign: "targets", cst.With: "items"}
"""What of a statement holds such expressions in turn."""
