"""Texts in the code: what a name that is made up may be, and how strings are quoted."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import libcst as cst

from migrator.syntax import parse, rebuild
from rules.below import children

_EXPONENT = re.compile(r"(?<=[\d.])e([+-])0+(?=\d)")


def _double_quotes(node: cst.CSTNode) -> cst.CSTNode:
    if isinstance(node, cst.SimpleString):
        text = node.value
        if text.startswith("'") and '"' not in text and not text.startswith("'''"):
            return node.with_changes(value=f'"{text[1:-1]}"')
        return node
    return rebuild(node, _double_quotes)


def requoted(node: cst.CSTNode, end: str) -> cst.CSTNode:
    """What stands between the braces of an f-string, its strings in quotes that do not end it."""
    return rebuild(node, lambda child: _within(child, end))


def _within(node: cst.CSTNode, end: str) -> cst.CSTNode:
    other = "'" if end == '"' else '"'
    if isinstance(node, cst.SimpleString) and end in node.value:
        prefix, _, text = node.value.partition(end)
        if len(end) == 1 and text.endswith(end) and not set(text[:-1]) & {"'", '"', "\\"}:
            return node.with_changes(value=f"{prefix}{other}{text[:-1]}{other}")
    if isinstance(node, cst.FormattedString) and node.end == end and len(end) == 1:
        if not any(map(_has_quotes, node.parts)):
            return node.with_changes(start=node.start[:-1] + other, end=other)
    return rebuild(node, lambda child: _within(child, end))


def _has_quotes(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.FormattedStringText):
        return bool(set(node.value) & {"'", '"', "\\"})
    if isinstance(node, (cst.SimpleString, cst.FormattedString)):
        return True
    return any(map(_has_quotes, children(node)))


def from_ast(node: ast.expr) -> cst.BaseExpression:
    """A libcst expression for a Python ast expression, in double quotes and short exponents."""
    text = _EXPONENT.sub(lambda m: "e-" if m[1] == "-" else "e", ast.unparse(node))
    made = parse(text)
    return _double_quotes(made)  # type: ignore[return-value]


def pattern(
    node: cst.BaseExpression, is_number: Callable[[cst.BaseExpression], bool] | None = None
) -> str:
    """What a name that is made up in the code may be, as a regular expression.

    Args:
      is_number: tells of an expression whether it is a whole number, of which the text is made of digits.
    """
    if isinstance(node, cst.SimpleString) and isinstance(node.evaluated_value, str):
        return re.escape(node.evaluated_value)
    if isinstance(node, cst.FormattedString):
        return "".join(_part(part, is_number) for part in node.parts)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return pattern(node.left, is_number) + pattern(node.right, is_number)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "str":
        told = len(node.args) == 1 and is_number is not None and is_number(node.args[0].value)
        return _DIGITS if told else ".*"
    template, hole = None, ""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
        template, hole = node.left, r"%[-+ #0-9.]*[a-zA-Z]"
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "format":
            template, hole = node.func.value, r"\{[^{}]*\}"
    text = template.evaluated_value if isinstance(template, cst.SimpleString) else None
    if isinstance(text, str):
        return ".*".join(re.escape(part) for part in re.split(hole, text))
    return ".*"


_DIGITS = r"-?\d+"


def _part(
    part: cst.BaseFormattedStringContent, is_number: Callable[[cst.BaseExpression], bool] | None
) -> str:
    if isinstance(part, cst.FormattedStringText):
        return re.escape(part.value)
    if not isinstance(part, cst.FormattedStringExpression) or part.format_spec or part.conversion:
        return ".*"
    return _DIGITS if is_number is not None and is_number(part.expression) else ".*"
