"""Writes past the gradient: to ``data``, or where none is recorded; a tensor keeps the gradient that it has."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.called_untracked import called_off, check_called, gradients_off
from migrator.convert.context import Context, Failure
from migrator.convert.handed_on import may_run
from migrator.convert.kept_results import kept_for_gradient
from migrator.convert.own_gradient import is_from_outside
from migrator.convert.refilled import may_have_gradient
from migrator.convert.rewriter import Rewriter
from migrator.convert.untracked import has_gradient, stopped
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.tables import INITIALISING
from rules.definitions import module_file


def past_gradient(
    rw: Rewriter,
    target: cst.BaseExpression,
    read: cst.BaseExpression,
    value: cst.BaseExpression,
    data: bool | None,
) -> cst.BaseExpression:
    """The new value of a tensor, whose gradient does not see it where torch writes to ``data`` or under no_grad.

    While a model is built, and in methods that no forward pass calls, nothing is differentiated.
    """
    from migrator.convert.passes.freezing import forward_reaches

    ctx, kind = rw.ctx, rw.ctx.kind(target)
    frame = ctx.frame
    if data is None or not isinstance(kind, k.Tensor):
        return value
    if not data and not ctx.no_grad and not _keeps_gradient(ctx, target, kind):
        return value
    if kind.role == "buffer" and (data or not may_have_gradient(ctx, target)):
        if frame is None or ctx.in_init or not data or not has_gradient(ctx, value):
            return value  # what is written under no_grad is looked after as a statement
        return stopped(rw, value)
    if kind.dtype in ("int", "bool"):
        return value
    if ctx.gradient_if and not data:
        raise Failure(
            target,
            "MUT002",
            "an in-place update under set_grad_enabled keeps x's own gradient or not",
            "give the new value a name of its own",
        )
    if frame is None or ctx.in_init:
        return value
    info = frame.info
    reached = may_run(ctx, info) if info.owner is None else forward_reaches(ctx, info)
    if not reached and not _may_be_differentiated(ctx, info, set()):
        return value
    if data and isinstance(target, cst.Name) and kept_for_gradient(ctx, target, info.node):
        what = f"`{target.value}` is written by .data, and torch may have kept it for a gradient"
        raise Failure(target, "MUT002", what, "give the new value a name of its own")
    name = ctx.helpers.need(module_file("rules.compat.data"), "with_data")
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(read), cst.Arg(value)])


def _keeps_gradient(ctx: Context, target: cst.BaseExpression, kind: k.Tensor) -> bool:
    """Whether a tensor keeps its own gradient, whatever is written to it in a function without gradients.

    To a parameter torch writes in no other: it is a leaf, but for one that is not trained.
    """
    if ctx.frame is None or ctx.in_init:
        return False
    if kind.role == "param":
        check_called(ctx, target)
        return gradients_off(ctx) or called_off(ctx, ctx.frame.info)
    if isinstance(target, cst.Name) and not kind.role:
        return gradients_off(ctx) and is_from_outside(ctx, target, target)
    return gradients_off(ctx)


def _may_be_differentiated(ctx: Context, function: FunctionInfo, asked: set[FunctionInfo]) -> bool:
    """Whether a function that no forward pass of the file calls may have a part in what is differentiated.

    It gives something, as ``log_prob`` and ``training_step`` do, one that does calls it, or a module of another file may.
    """
    asked.add(function)
    if function.short in {"__init__", *INITIALISING} or ctx.plan.builds_time(function):
        return False
    gives = (one.value for one in ctx.facts.tree.within(function.node, cst.Return))
    if any(value is not None and syntax.code(value) != "None" for value in gives):
        return True
    linked, owner = ctx.facts.linked, function.owner
    if linked is not None and owner is not None and linked.shared(owner.name):
        return True
    callers = (one for one in function.callers if one not in asked)
    return any(_may_be_differentiated(ctx, one, asked) for one in callers)


def augmented_variable(
    rw: Rewriter,
    node: cst.AugAssign,
    target: cst.BaseExpression,
    data: bool = False,
) -> cst.AugAssign | cst.Assign:
    """``self.weight *= mask`` of a parameter or buffer, which may be held transposed."""
    from migrator.convert.passes import targets

    reference, transposed = targets.variable_reference(rw, target)
    by_number = k.scalar_type(rw.ctx.kind(node.value)) is not None
    read = targets.dereferenced(reference)
    return augmented_past(rw, node, target, read, data, transposed and not by_number)


def augmented_past(
    rw: Rewriter,
    node: cst.AugAssign,
    target: cst.BaseExpression,
    read: cst.BaseExpression,
    data: bool,
    transposed: bool = False,
) -> cst.AugAssign | cst.Assign:
    """``x.data *= mask``: what is written past the gradient is an assignment, as it is in another layout."""
    value = rw.visit(node.value)
    operator = syntax.code(node.operator).strip().removesuffix("=")
    template = syntax.parse(
        f"(__x__.T {operator} __y__).T" if transposed else f"__x__ {operator} __y__"
    )
    whole = syntax.substitute(template, {"__x__": read, "__y__": value})
    made = past_gradient(rw, target, read, whole, data)
    if made is whole and not transposed:
        return syntax.changed(node, target=read, value=value)
    assert isinstance(read, (cst.Name, cst.Attribute, cst.Subscript))
    return cst.Assign([cst.AssignTarget(read)], made)


def keeps_its_own(ctx: Context, node: cst.AugAssign) -> bool:
    """Whether a tensor that is written to may have a gradient of its own, which it keeps."""
    if ctx.no_grad or ctx.in_init:
        return bool(ctx.no_grad) and not ctx.in_init
    return is_from_outside(ctx, node, node.target) if isinstance(node.target, cst.Name) else False
