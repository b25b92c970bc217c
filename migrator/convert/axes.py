"""``axis=tuple(dims) or None`` of a reduction, as short as what ``dims`` is allows.

torch reduces over all axes where ``dim`` is empty, JAX over none: ``x.mean(tuple(range(2, x.ndim)))`` of a matrix.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context

_SHORTER = frozenset({"pop", "remove", "clear"})
_BINDING = (cst.Del, cst.Param, cst.AnnAssign, cst.NamedExpr)


def as_axes(ctx: Context, node: Any) -> Any:
    """What a definition became, without a second ``tuple`` and without ``or None`` of what has elements."""
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.Or):
        left: Any = node.left
        if _is_made(left, "tuple") and isinstance(node.right, cst.Name):
            inner = left.args[0].value
            if isinstance(inner, cst.Call) and (
                _is_made(inner, "tuple") or _is_made(inner, "list")
            ):
                inner = inner.args[0].value
                left = syntax.changed(left, args=[cst.Arg(inner)])
            return left if _is_filled(ctx, inner) else syntax.changed(node, left=left)
    return syntax.rebuild(node, lambda child: as_axes(ctx, child))


def _is_made(node: cst.CSTNode, name: str) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == name
        and len(node.args) == 1
        and not node.args[0].star
    )


def _is_filled(ctx: Context, node: cst.BaseExpression, depth: int = 4) -> bool:
    """Whether a sequence surely has elements: ``[0, *range(2, n)]``, ``[0] + more``, a name of either."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(isinstance(one, cst.Element) for one in node.elements)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return _is_filled(ctx, node.left, depth) or _is_filled(ctx, node.right, depth)
    if _is_made(node, "tuple") or _is_made(node, "list"):
        return _is_filled(ctx, node.args[0].value, depth)  # type: ignore[attr-defined]
    if not isinstance(node, cst.Name) or ctx.frame is None or not depth:
        return False
    if node.value in ctx.frame.info.params:
        return False
    body = ctx.frame.info.node.body
    values: list[cst.BaseExpression] = []
    for line in ctx.facts.tree.within(body, cst.Assign, cst.Call, cst.AugAssign, *_BINDING):
        if isinstance(line, cst.Assign):
            for target in line.targets:
                if node.value in syntax.names(target.target):
                    if not isinstance(target.target, cst.Name):
                        return False
                    values.append(line.value)
        elif isinstance(line, cst.Call):
            func = line.func
            if isinstance(func, cst.Attribute) and func.attr.value in _SHORTER:
                if isinstance(func.value, cst.Name) and func.value.value == node.value:
                    return False
        elif isinstance(line, cst.AugAssign) and isinstance(line.operator, cst.AddAssign):
            continue
        elif node.value in syntax.names(line):
            return False
    return len(values) == 1 and _is_filled(ctx, values[0], depth - 1)
