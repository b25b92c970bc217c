"""``x.data`` of something unknown, which may be a tensor or an object with an attribute of that name."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Attribute, named=("data",))
def data_of_something(rw: Rewriter, node: cst.Attribute) -> Any:
    """``(preds == labels.data).sum()`` with nothing known of ``labels``: a tensor, or an object with tensors."""
    ctx = rw.ctx
    called = isinstance(node.value, cst.Call) and _may_be_layer(ctx, node.value)
    if node.attr.value != "data" or not (isinstance(node.value, cst.Name) or called):
        return None
    if not isinstance(ctx.facts.kind(node.value), k.Unknown) or not ctx.facts.tree.has(node):
        return None
    if ctx.is_self(node.value):
        return None
    parent = ctx.facts.tree.around(node)[-1]
    if isinstance(parent, cst.Arg):
        call = ctx.facts.tree.around(node)[-2]
        callee = ctx.facts.callee(call) if isinstance(call, cst.Call) else None
        if not (callee or "").startswith(("torch.", "Tensor.")):
            return None
    elif not isinstance(parent, (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget)):
        if not called and not _is_result(ctx, node.value):
            return None
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del)):
            return None
    helper = ctx.helpers.need(module_file("rules.compat.data"), "data_of")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(node.value))])


def _may_be_layer(ctx: Context, call: cst.Call) -> bool:
    """``m(x)`` of an argument, or of what a module was handed: a layer perhaps, which gives a tensor."""
    if not call.args or not isinstance(ctx.kind(call.func), (k.Unknown, k.Module)):
        return False
    if isinstance(call.func, cst.Attribute):
        return ctx.is_self(call.func.value)
    params = ctx.frame.info.params if ctx.frame is not None else {}
    return isinstance(call.func, cst.Name) and call.func.value in params


def _is_result(ctx: Context, name: cst.BaseExpression) -> bool:
    """Whether a local name is given what such a call gives, and nothing else."""
    if ctx.frame is None or not isinstance(name, cst.Name) or name.value in ctx.frame.info.params:
        return False
    given = [
        one.value
        for one in ctx.facts.tree.within(ctx.frame.info.node.body, cst.Assign)
        if any(isinstance(t.target, cst.Name) and t.target.value == name.value for t in one.targets)
    ]
    return bool(given) and all(isinstance(v, cst.Call) and _may_be_layer(ctx, v) for v in given)
