"""Chains of calls in place that read what they have written: ``y.mul_(2).add_(y.mean())``.

Python runs ``y.mul_(2)`` before it computes ``y.mean()``. In lines of their own the two are read as they run.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_statements

_CHAIN = re.compile(r"\w_\(.*\)\s*\.[a-z]\w*_\(", re.S)


def in_lines(tree: cst.Module, text: str) -> cst.Module:
    """A file whose chains of calls in place have a line for each, where a later one reads what they write to."""
    if not _CHAIN.search(text):
        return tree
    blocks = (cst.IndentedBlock, cst.Module)
    return with_statements(tree, lambda node: _block(node) if isinstance(node, blocks) else node)


def _block(block: Any) -> Any:
    lines: list[Any] = []
    for line in block.body:
        lines += _split(line) if isinstance(line, cst.SimpleStatementLine) else [line]
    return syntax.changed(block, body=lines) if len(lines) != len(block.body) else block


def _split(line: cst.SimpleStatementLine) -> list[Any]:
    small: Any = line.body[0]
    if len(line.body) != 1 or not isinstance(small, (cst.Expr, cst.Assign, cst.Return)):
        return [line]
    value, alone = small.value, isinstance(small, cst.Expr)
    chain = _chain(value, alone) if value is not None else []
    receiver = chain[0].func.value if chain else None
    if receiver is None or not any(_reads(one, receiver) for one in chain[1:]):
        return [line]
    before: list[Any] = []
    for place, call in enumerate(chain[:-1]):
        own = receiver if place == 0 else receiver.deep_clone()
        one = syntax.changed(call, func=syntax.changed(call.func, value=own))
        before.append(cst.SimpleStatementLine([cst.Expr(one)]))
    before[0] = syntax.changed(before[0], leading_lines=line.leading_lines)
    last = syntax.changed(
        chain[-1], func=syntax.changed(chain[-1].func, value=receiver.deep_clone())
    )

    def visit(node: cst.CSTNode) -> Any:
        return last if node is chain[-1] else syntax.rebuild(node, visit)

    made = syntax.changed(line, body=[visit(small)], leading_lines=[])
    return [*before, made]


def _chain(value: Any, alone: bool) -> list[Any]:
    """The calls in place at the front of an expression, which it runs before anything else of it."""
    found: list[Any] = []
    node = value
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if _is_in_place(node):
                found.insert(0, node)
            elif found:
                return []  # ``y.add(1).mul_(y)`` writes to what has no name
            node = node.func.value
        elif isinstance(node, cst.Attribute) and not found:
            node = node.value
        elif isinstance(node, cst.Subscript) and not found:
            node = node.value
        else:
            break
    if len(found) < 2:
        return []
    receiver = found[0].func.value
    while isinstance(receiver, cst.Attribute) or (alone and isinstance(receiver, cst.Subscript)):
        if isinstance(receiver, cst.Subscript) and any(
            isinstance(one, (cst.Call, cst.NamedExpr)) for one in syntax.walk(receiver)
        ):
            return []
        receiver = receiver.value
    return found if isinstance(receiver, cst.Name) and not receiver.lpar else []


def _is_in_place(call: cst.Call) -> bool:
    func = call.func
    name = func.attr.value if isinstance(func, cst.Attribute) else ""
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


def _reads(call: cst.Call, receiver: cst.BaseExpression) -> bool:
    """Whether the arguments of a call name what a chain writes to: the variable, or the attribute of ``self``."""
    path = syntax.code(receiver).removesuffix(".data")
    root = path.split(".")[0].split("[")[0]
    if "." not in path or root != "self":
        return any(root in syntax.names(one) for one in call.args)
    return any(
        syntax.code(node) == path or (isinstance(node, cst.Call) and _is_own(node))
        for one in call.args
        for node in syntax.walk(one)
        if isinstance(node, (cst.Attribute, cst.Call))
    )


def _is_own(call: cst.Call) -> bool:
    """``self.mean(x)`` and ``mean(self)``, which may read any attribute."""
    func = call.func
    handed = any(isinstance(a.value, cst.Name) and a.value.value == "self" for a in call.args)
    return handed or (isinstance(func, cst.Attribute) and syntax.is_own(func, func.attr.value))
