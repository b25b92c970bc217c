"""Local names that stand for one of several functions of the project: ``schedule = linear if … else cosine``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def meant(ctx: Context, info: FunctionInfo, func: cst.BaseExpression) -> list[FunctionInfo]:
    """The functions of the project that a call in ``info`` may reach; nothing where it may reach something else."""
    if not isinstance(func, cst.Name):
        return []
    values = _given(ctx, info, func.value)
    if values is None:
        return []
    found = []
    for value in values or [func]:
        kind = ctx.facts.kind(value)
        one = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        if one is None or one.owner is not None or one.outer is not None:
            return []
        found.append(one)
    return found


def _given(ctx: Context, info: FunctionInfo, name: str) -> list[cst.BaseExpression] | None:
    """What a function's assignments bind a name to; None where something else binds it too."""
    tree, body = ctx.facts.tree, info.node.body
    if name in syntax.parameters(info.node):
        return None
    found: list[cst.BaseExpression] = []
    for node in tree.within(body, cst.Assign):
        for target in node.targets:
            if isinstance(target.target, cst.Name) and target.target.value == name:
                found += _arms(node.value)
            elif name in syntax.names(target.target):
                return None
    for other in (cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.CompFor):
        if any(name in syntax.names(node.target) for node in tree.within(body, other)):
            return None
    binding = tree.within(body, cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom, cst.With)
    if any(name in syntax.names(node) for node in binding):
        return None
    return found


def _arms(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """``a`` and ``b`` of ``a if test else b``."""
    return [*_arms(node.body), *_arms(node.orelse)] if isinstance(node, cst.IfExp) else [node]
