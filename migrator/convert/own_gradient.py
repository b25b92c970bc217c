"""Tensors from outside that code under ``no_grad`` writes to: they keep the gradient that they had."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter
from migrator.convert.untracked import is_another_name


def check_own_gradient(ctx: Context, call: cst.Call, target: cst.BaseExpression) -> None:
    """Raise a Failure where ``z = y.mul_(2)`` under ``no_grad`` gives a y from outside, which keeps the gradient that it had."""
    from migrator.convert.passes.freezing import forward_reaches

    frame, tree = ctx.frame, ctx.source.index
    if not ctx.no_grad or frame is None or ctx.in_init or not isinstance(target, cst.Name):
        return
    kind = ctx.kind(target)
    if not is_another_name(ctx, target) or getattr(kind, "dtype", None) in ("int", "bool"):
        return
    if frame.info.owner is not None and not forward_reaches(ctx, frame.info):
        return
    if not tree.has(call):
        return
    for around in tree.around(call):
        if not isinstance(around, cst.With) or not tree.holds(frame.info.node, around):
            continue
        for one in tree.within(around.body, cst.Assign):
            names = [name for to in one.targets for name in syntax.names(to.target)]
            if target.value in names and tree.place(one) < tree.place(call):
                if not tree.holds(one, call):
                    return  # it is computed without a gradient
    what = f"`{target.value}`, changed under no_grad, keeps the gradient that it had"
    raise Failure(call, "MUT002", what, "give the change a statement of its own")


def adds(rw: Rewriter, node: cst.AugAssign) -> bool:
    """Whether a write under ``no_grad`` adds to a tensor: its own gradient is that of a sum with a constant."""
    name = isinstance(node.target, (cst.Name, cst.Attribute))
    adds = isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
    return name and adds and not rw.ctx.gradient_if


def with_constant(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``total += loss`` → ``total += stop_gradient(loss)``."""
    from migrator.convert.passes.functions import stopped

    check_mutation(rw.ctx, node, node.target)
    value = stopped(rw, rw.visit(node.value), node.value)
    target = rw.rebuild(node.target) if isinstance(node.target, cst.Attribute) else node.target
    return syntax.changed(node, target=target, value=value)
