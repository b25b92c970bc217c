"""Functions that are defined under ``no_grad``: torch asks where they are called, not where they stand."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context, Failure


def asked_under_it(ctx: Context, node: cst.FunctionDef) -> bool:
    """Whether a function is called in the block that it stands in, and nowhere else.

    Raises:
      Failure: it is used elsewhere, and does more than give a result.
    """
    tree = ctx.facts.tree
    around = tree.around(node) if tree.has(node) else []
    block = next((one for one in reversed(around) if isinstance(one, cst.With)), None)
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    if block is None or function is None or not tree.holds(function, block):
        return True
    named = [n for n in tree.within(function.body, cst.Name) if n.value == node.name.value]
    if all(n is node.name or (tree.holds(block, n) and _is_called(ctx, n)) for n in named):
        return True
    if any(_has_effect(one) for one in tree.below(node.body)):
        what = f"{node.name.value}() is defined under no_grad and used elsewhere too, where it writes with a gradient"
        raise Failure(node, "MUT002", what, "define it before the block")
    return False


def _is_called(ctx: Context, name: cst.Name) -> bool:
    call = ctx.facts.tree.parent(name)
    return isinstance(call, cst.Call) and call.func is name


def _has_effect(node: cst.CSTNode) -> bool:
    """Whether a node may change what is outside of a function: a call that is a statement, a write to an item or in place."""
    if isinstance(node, cst.AssignTarget):
        return not isinstance(node.target, (cst.Name, cst.Tuple))
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.attr.value.endswith("_")
    return isinstance(node, (cst.Expr, cst.AugAssign, cst.Global, cst.Nonlocal, cst.Yield))
