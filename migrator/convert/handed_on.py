"""Functions that are values, and what others than the forward pass may call."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo, Linked
from migrator.infer import kinds as k
from migrator.tree import Tree


def is_handed_on(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function is handed on, other than to ``Module.apply``: whoever gets it may call it."""
    if ctx.values is None:
        ctx.values = _values(ctx)
    functions, names = ctx.values
    return info in functions or info.short in names


def _values(ctx: Context) -> tuple[set[FunctionInfo], set[str]]:
    """The functions that stand somewhere as values, and names in lambdas that nobody was seen to call.

    Files that import one another in a circle are looked at together.
    """
    functions, names = set[FunctionInfo](), set[str]()
    trees = (ctx.facts.tree, *ctx.facts.tree.beside)
    every = (
        (tree, node)
        for tree in trees
        for t in (cst.Name, cst.Attribute)
        for node in tree.of_type(t)
    )
    for tree, node in every:
        kind = ctx.facts.kinds.get(node, k.UNKNOWN)
        if isinstance(kind, k.Unknown):
            if any(isinstance(one, cst.Lambda) for one in tree.around(node)):
                names.add(syntax.code(node).rpartition(".")[2])
        elif isinstance(kind, k.Function) and stands_as_value(ctx, node):
            info = ctx.facts.names.get(kind.name)
            if info is not None and not _is_called_by_another_name(tree, node):
                functions.add(info)
        elif isinstance(kind, k.Other) and stands_as_value(ctx, node):  # an object that is called
            made = ctx.facts.classes.get(kind.type)
            info = made.method("__call__") if made is not None and not made.torch_base else None
            if info is not None:
                functions.add(info)
    return functions, names


def _is_called_by_another_name(tree: Tree, node: cst.CSTNode) -> bool:
    """``sparsemax = Sparsemax.apply`` at the head of a file, all of whose uses there are calls."""
    match tree.around(node):
        case [
            cst.Module(),
            cst.SimpleStatementLine(),
            cst.Assign([cst.AssignTarget(cst.Name(name))]),
        ]:
            uses = (one for one in tree.of_type(cst.Name) if one.value == name)
            called = [
                isinstance(above := tree.parent(one), cst.Call) and above.func is one
                for one in uses
            ]
            return called.count(False) == 1  # the assignment
    return False


def stands_as_value(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a function is named for what gets it to call: not called here, and not handed to ``Module.apply``."""
    around = ctx.source.index.around(node)
    if isinstance(around[-1], cst.Arg):
        call = around[-2]
        func = call.func if isinstance(call, cst.Call) else None
        return not (isinstance(func, cst.Attribute) and func.attr.value == "apply")
    return not isinstance(around[-1], (cst.Call, cst.FunctionDef, cst.Attribute, cst.AssignTarget))


def reaches_others(ctx: Context, info: FunctionInfo) -> bool:
    """Whether others than the forward passes of the file may run a function: another file, or who gets it as a value."""
    if ctx.asked_by_others is None:
        linked = ctx.facts.linked
        queue = [
            one
            for one in ctx.facts.functions.values()
            if (linked is not None and _is_read_elsewhere(linked, one)) or is_handed_on(ctx, one)
        ]
        ctx.asked_by_others = set()
        while queue:
            one = queue.pop()
            if one not in ctx.asked_by_others:
                ctx.asked_by_others.add(one)
                queue.extend(c for c in one.calls if isinstance(c, FunctionInfo))
    return info in ctx.asked_by_others and not ctx.plan.builds_time(info)


def _is_read_elsewhere(linked: Linked, info: FunctionInfo) -> bool:
    """Whether another file reads a function, or the class whose method it is: but for what builds its instances."""
    owner = info.owner.name if info.owner is not None and info.short != "__init__" else ""
    return linked.shared(info.name) or (bool(owner) and linked.shared(owner))


def may_run(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function may be run on tensors, for all that the file shows: by a forward pass, or by others."""
    from migrator.convert.passes.freezing import forward_reaches

    return forward_reaches(ctx, info) or reaches_others(ctx, info)
