"""Whether a tensor may have a leading axis of one element: ``y.reshape(1, -1)``, ``y[None]``, ``y.unsqueeze(0)``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context


def may_lead(ctx: Context, node: cst.BaseExpression, place: cst.CSTNode) -> bool:
    """Whether what a value is computed from is given such an axis by what the function around a place says."""
    if not ctx.facts.tree.has(place):
        return False
    around = [n for n in ctx.facts.tree.around(place) if isinstance(n, cst.FunctionDef)]
    if not around:
        return False
    assigned: dict[str, list[cst.BaseExpression]] = {}
    for one in ctx.facts.tree.within(around[-1].body, cst.Assign, cst.AnnAssign, cst.AugAssign):
        if one.value is None:
            continue
        for target in syntax.assigned_to(one) or [one.target]:
            for name in syntax.names(target):
                assigned.setdefault(name, []).append(one.value)
    indexed = isinstance(place, cst.Subscript) and any(
        isinstance(e.slice, cst.Index) for e in place.slice
    )
    pending, seen = [node], set()
    while pending:
        for part in syntax.walk(pending.pop()):
            if _leads(part) or (indexed and _is_one(part)):
                return True
            if isinstance(part, cst.Name) and part.value not in seen:
                seen.add(part.value)
                pending += assigned.get(part.value, [])
    return False


def _leads(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Subscript):
        part = node.slice[0].slice
        return isinstance(part, cst.Index) and _is(part.value, "None")
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or not node.args:
        return False
    method = node.func.attr.value
    first, last = node.args[0].value, node.args[-1].value
    if method in ("reshape", "view"):
        given = (
            first.elements[0].value if isinstance(first, cst.Tuple) and first.elements else first
        )
        return _is(given, "1") and (given is not first or len(node.args) > 1)
    return method == "unsqueeze" and _is(last, "0")


def _is_one(node: cst.CSTNode) -> bool:
    """``v[:1]``, which a place for a number takes."""
    part = node.slice[0].slice if isinstance(node, cst.Subscript) else None
    if not isinstance(part, cst.Slice) or part.lower is not None or part.upper is None:
        return False
    return _is(part.upper, "1")


def _is(node: cst.BaseExpression, text: str) -> bool:
    return isinstance(node, (cst.Name, cst.Integer)) and node.value == text
