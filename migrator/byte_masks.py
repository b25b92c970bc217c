"""Masks of bytes as indices, ``x[mask.byte()] = y[mask]``: torch takes them for the masks of booleans they stand for."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by, with_functions

_MADE = re.compile(r"\.byte\(\)|\.uint8\b")
_DTYPE = re.compile(r"(?:\w+\.)?uint8")


def as_booleans(tree: cst.Module, text: str) -> cst.Module:
    """A file whose functions index by booleans where they did by bytes that they made themselves."""
    if not _MADE.search(text) or "[" not in text:
        return tree
    return with_functions(tree, _function)


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    body = _block(function.body, set())
    return syntax.changed(function, body=body) if body is not function.body else function


def _block(block: Any, known: set[str]) -> Any:
    """A block with what it indexes by bytes; ``known``: the variables that are masks of bytes where it begins."""
    lines = []
    for line in block.body:
        lines.append(_line(line, known))
        changed = _bound(line)
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign([cst.AssignTarget(cst.Name(value=name))], value)]
            ):
                known = known | {name} if _is_bytes(value, known) else known - {name}
            case _:
                known = known - changed
    if all(new is old for new, old in zip(lines, block.body, strict=True)):
        return block
    return syntax.changed(block, body=lines)


def _line(line: Any, known: set[str]) -> Any:
    if isinstance(line, (cst.FunctionDef, cst.ClassDef)):
        return line
    repeated = isinstance(line, (cst.For, cst.While))
    inside = known - _bound(line) if repeated else known

    def visit(node: cst.CSTNode) -> Any:
        if isinstance(node, cst.IndentedBlock):
            return _block(node, inside)
        if isinstance(node, cst.Lambda):
            return node
        made = syntax.rebuild(node, visit)
        if isinstance(made, cst.Index) and _is_bytes(made.value, inside):
            value = made.value
            if not isinstance(value, (cst.Name, cst.Call)):
                value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            asked = cst.Call(cst.Attribute(value, cst.Name("bool")))
            return syntax.changed(made, value=asked)
        return made

    return visit(line)


def _bound(line: cst.CSTNode) -> set[str]:
    return {
        name
        for node in syntax.walk(line)
        if isinstance(node, BINDING)
        for name in bound(bound_by(node))
    }


def _is_bytes(node: cst.BaseExpression, names: set[str]) -> bool:
    """``x.byte()``, ``x.to(torch.uint8)``, a variable that is one, ``1 - mask`` of it."""
    match node:
        case cst.Name(value=name):
            return name in names
        case cst.Call(func=cst.Attribute(attr=cst.Name("byte")), args=[]):
            return True
        case cst.Call(
            func=cst.Attribute(attr=cst.Name("to" | "type")), args=[cst.Arg(value=dtype, star="")]
        ):
            return _DTYPE.fullmatch(syntax.code(dtype)) is not None
        case cst.BinaryOperation(
            left=cst.Integer(value="1"), operator=cst.Subtract(), right=cst.Name(value=name)
        ):
            return name in names
    return False
