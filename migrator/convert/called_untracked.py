"""Functions that are called where no gradient is recorded, all of their calls or some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from migrator.infer import FunctionInfo
from migrator.infer.switches import OFF
from migrator.tree import Tree

if TYPE_CHECKING:
    from migrator.convert.context import Context


def gradients_off(ctx: Context) -> bool:
    """Whether no gradient is recorded here: a block says so, a decorator, or all that call the function.

    Who else may call it, from another file or as a value, is not seen.
    """
    from migrator.convert.handed_on import reaches_others

    frame = ctx.frame
    if ctx.no_grad or frame is None or frame.no_grad:
        return bool(ctx.no_grad) or frame is not None
    return called_off(ctx, frame.info) and not reaches_others(ctx, frame.info)


def called_off(ctx: Context, info: FunctionInfo) -> bool:
    """Whether every call of a function that is seen stands where no gradient is recorded."""
    return _off(ctx, info) is True


def check_called(ctx: Context, node: cst.CSTNode) -> None:
    """Raise a Failure for a write whose gradient goes by who calls the function: some do so without gradients."""
    from migrator.convert.context import Failure
    from migrator.convert.handed_on import may_run

    frame = ctx.frame
    if frame is None or ctx.no_grad or frame.no_grad or _off(ctx, frame.info) is not None:
        return
    if not may_run(ctx, frame.info):
        return
    what = f"{frame.info.short}() is called with gradients and without, and writes to a parameter"
    raise Failure(node, "MUT002", what, "write to its .data, or decorate it with @torch.no_grad()")


def _off(ctx: Context, info: FunctionInfo) -> bool | None:
    """True where all calls of a function are without gradients, False where none is, None for some."""
    if info not in ctx.called_off:
        ctx.called_off[info] = False  # for functions that call themselves
        ctx.called_off[info] = _of_calls(ctx, info)
    return ctx.called_off[info]


def _of_calls(ctx: Context, info: FunctionInfo) -> bool | None:
    if info.short in ("forward", "__call__", "__init__") or info.settled is not None:
        return False
    found = {_at(ctx, call, caller) for call, caller in info.call_sites.items()}
    if found <= {False}:
        return False
    return True if found == {True} else None


def _at(ctx: Context, call: cst.CSTNode, caller: FunctionInfo | None) -> bool | None:
    """Whether a call stands where no gradient is recorded; None where only a run tells."""
    tree: Tree = ctx.facts.tree
    if not any(one.has(call) for one in (tree, *tree.beside)):
        return False  # of another file
    for node in reversed(tree.around(call)):
        if isinstance(node, cst.With):
            for item in node.items:
                told = _switched(ctx, item.item)
                if told is not False:
                    return told == "off"
        if isinstance(node, cst.FunctionDef):
            names = (one.decorator for one in node.decorators)
            named = (one.func if isinstance(one, cst.Call) else one for one in names)
            if any(ctx.facts.qualified_name(one) in OFF for one in named):
                return True
            break
    return _off(ctx, caller) if caller is not None else False


def _switched(ctx: Context, item: cst.BaseExpression) -> str | bool:
    """ "off", "on", or False for a context that switches nothing."""
    name = ctx.facts.callee(item) if isinstance(item, cst.Call) else None
    if name in OFF:
        return "off"
    if name == "torch.enable_grad":
        return "on"
    if name == "torch.set_grad_enabled" and isinstance(item, cst.Call) and item.args:
        value = item.args[0].value
        return "off" if isinstance(value, cst.Name) and value.value == "False" else "on"
    return False
