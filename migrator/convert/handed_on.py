"""Functions that are values: who gets them may call them with anything."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def is_handed_on(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function is handed on, other than to ``Module.apply``: whoever gets it may call it."""
    tree = ctx.facts.tree
    for node in (*tree.of_type(cst.Name), *tree.of_type(cst.Attribute)):
        kind = ctx.facts.kind(node)
        if isinstance(kind, k.Unknown) and syntax.code(node).rpartition(".")[2] == info.short:
            if any(isinstance(one, cst.Lambda) for one in tree.around(node)):
                return True  # a lambda that nobody was seen to call
        if not isinstance(kind, k.Function) or ctx.facts.names.get(kind.name) is not info:
            continue
        around = tree.around(node)
        if isinstance(around[-1], cst.Arg):
            call = around[-2]
            func = call.func if isinstance(call, cst.Call) else None
            if isinstance(func, cst.Attribute) and func.attr.value == "apply":
                continue
        elif isinstance(around[-1], (cst.Call, cst.FunctionDef, cst.Attribute)):
            continue
        return True
    return False


def reaches_others(ctx: Context, info: FunctionInfo) -> bool:
    """Whether others than the calls that are seen may call a function: another file reads it, or it is handed on."""
    linked = ctx.facts.linked
    return (linked is not None and linked.shared(info.name)) or is_handed_on(ctx, info)
