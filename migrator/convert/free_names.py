"""Names of the code around a function within a function: what stands for them is written for everybody there."""

from __future__ import annotations

import libcst as cst

from migrator.assignments import bound
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def of_outer(ctx: Context, info: FunctionInfo, node: cst.Name) -> frozenset[str]:
    """The memory of what a name stands for that a function around gives its value; none of layers and functions."""
    if info.outer is None or isinstance(ctx.kind(node), (k.Module, k.Class, k.Function)):
        return frozenset()
    outer: FunctionInfo | None = info.outer
    while outer is not None:
        if _binds(ctx, outer, node.value):
            return frozenset({f"attr:{node.value}"})
        outer = outer.outer
    return frozenset()


def _binds(ctx: Context, outer: FunctionInfo, name: str) -> bool:
    """Whether a function has a variable or an argument of a name, but for the object whose method it is."""
    if name in outer.params:
        return True
    binding = ctx.facts.tree.within(outer.node.body, cst.AssignTarget, cst.AnnAssign, cst.For)
    return any(name in bound(one.target) for one in binding)
