"""What the rewritings of a source ask of its functions, before anything is inferred: what is bound, what is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax


def with_functions(
    tree: cst.Module, change: Callable[[cst.FunctionDef], cst.FunctionDef]
) -> cst.Module:
    """A file with each function changed, inner ones first."""

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, _WITHOUT_FUNCTIONS):
            return node
        made = syntax.rebuild(node, visit)
        return change(made) if isinstance(made, cst.FunctionDef) else made

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


def with_statements(tree: cst.Module, change: Callable[[Any], Any]) -> cst.Module:
    """A file with each block and compound statement changed, inner ones first; expressions are not looked into."""

    def visit(node: cst.CSTNode) -> Any:
        if isinstance(node, (cst.BaseExpression, cst.SimpleStatementLine)):
            return node
        return change(syntax.rebuild(node, visit))

    made: cst.Module = visit(tree)
    return made


_WITHOUT_FUNCTIONS = (cst.BaseExpression, cst.SimpleStatementLine, cst.SimpleStatementSuite)
"""What holds no function; with these most of a file is left aside."""

BINDING = (
    *(cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor),
    *(cst.NamedExpr, cst.Param, cst.AsName),
)
"""What binds names, functions and imports aside."""


def bound_by(node: Any) -> cst.CSTNode:
    """The target of one of ``BINDING``."""
    found: cst.CSTNode = node.name if isinstance(node, (cst.Param, cst.AsName)) else node.target
    return found


def bound(target: cst.CSTNode) -> Iterator[str]:
    """The names that a target binds: ``a`` and ``b`` of ``(a, b)``."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for one in target.elements:
            yield from bound(one.value)


def is_target(around: Sequence[cst.CSTNode], node: cst.CSTNode) -> bool:
    """Whether a node is bound, written or deleted where it stands: ``xs[i], y = y, xs[i]``.

    Args:
      around: the nodes around it, outermost first.
    """
    child = node
    for above in reversed(around):
        if isinstance(above, (cst.AssignTarget, cst.Del, cst.Param, cst.AsName)):
            return True
        if isinstance(above, _BINDING):
            return above.target is child
        if not isinstance(above, (cst.Element, cst.StarredElement, cst.Tuple, cst.List)):
            return False
        child = above
    return False


_BINDING = (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr)


def is_written(body: cst.CSTNode, name: str) -> bool:
    """Whether a variable's tensor is written: ``row[:n] = x``, ``row[:n].copy_(x)``, ``row += 1``, ``row.fill_(0)``."""
    return any(_root(target) == name for target in _written(body))


def _written(body: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    for node in syntax.walk(body):
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript):
            yield node.target
        elif isinstance(node, cst.AugAssign):
            yield node.target
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            method = node.func.attr.value
            if method.endswith("_") and not method.endswith("__"):
                yield node.func.value


def _root(node: cst.BaseExpression) -> str:
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def cases(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What an expression may be: the branches of a conditional one, the operands of ``or`` and ``and``."""
    if isinstance(value, cst.IfExp):
        return cases(value.body) + cases(value.orelse)
    if isinstance(value, cst.BooleanOperation):
        return cases(value.left) + cases(value.right)
    return [value]
