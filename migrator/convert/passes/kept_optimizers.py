"""``self.optimizer = optim.Adam(self.parameters())`` in a module: nothing that the model computes asks for it."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.convert.passes.freezing import forward_reaches
from migrator.convert.passes.library import asked_by_text, or_raising, raising
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules.elsewhere import advice_for

_OPTIM = "torch.optim."
_ARGUMENTS = frozenset("parameters named_parameters filter list dict tuple chain float int".split())
"""What is called for the arguments of an optimiser and changes nothing."""
_OF_LIGHTNING = "configure_optimizers"
_MODEL = frozenset({"__init__", "__new__", "forward", "__call__"})
_MAKES = "this makes an optimiser of torch; use optax instead"


def _trains(ctx: Context) -> bool:
    return "optim" in ctx.source.text


@converts(cst.Assign, targets=(cst.Attribute,), values=(cst.Call,), when=_trains)
def left_out(rw: Rewriter, node: cst.Assign) -> Any:
    """An optimiser or a schedule that a constructor keeps goes, where whatever reads it is a finding of its own."""
    ctx = rw.ctx
    name = _kept(ctx, node)
    if name is None or not ctx.in_init or ctx.owner is None or not ctx.owner.torch_base:
        return None
    if not ctx.facts.tree.has(node) or not _only_training(ctx, name):
        return None
    made = ctx.facts.callee(node.value)  # type: ignore[arg-type]
    what = f"{made} is left out: training is no part of what the model computes"
    ctx.report(node, "API012", what, advice_for(made or _OPTIM), severity="info", blocks=False)
    return []


@converts(cst.FunctionDef, when=_trains)
def made_by_method(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """``configure_optimizers``: a method that nobody calls and that only gives what trains the module raises."""
    ctx = rw.ctx
    info = ctx.facts.functions.get(node)
    if info is None or info.owner is None or not info.owner.torch_base:
        return None
    if info.short in _MODEL or forward_reaches(ctx, info) or not _gives_optimizer(ctx, info):
        return None
    if info.call_sites or asked_by_text(ctx, info.short):
        return None
    if any(one.attr.value == info.short for one in ctx.source.index.of_type(cst.Attribute)):
        return None
    advice = advice_for(_OPTIM)
    return or_raising(rw, node, info, "makes an optimiser of torch", advice, raising(_MAKES))


def _gives_optimizer(ctx: Context, info: FunctionInfo) -> bool:
    """Whether all that a method gives is an optimiser, or what Lightning takes for that."""
    if info.generator or not any(
        _makes_one(ctx, c) for c in ctx.facts.tree.within(info.node.body, cst.Call)
    ):
        return False
    if info.short == _OF_LIGHTNING:
        return True
    given = [r.value for r in ctx.facts.tree.within(info.node.body, cst.Return)]
    return bool(given) and all(one is not None and _optimizer(ctx, one) for one in given)


@converts(cst.Attribute, kinds=(k.Other,))
def read(rw: Rewriter, node: cst.Attribute) -> Any:
    """An optimiser that is read, but for what it is asked to do, which is a finding by itself (API012)."""
    made = _optimizer(rw.ctx, node)
    if made is None or not rw.ctx.facts.tree.has(node):
        return None
    match rw.ctx.facts.tree.around(node):
        case [*_, cst.Call() as call, cst.Attribute() as asked] if call.func is asked:
            return None
        case [*_, cst.Assign(), cst.AssignTarget()]:
            return None
    raise Failure(node, "API001", f"{made} has no conversion", advice_for(made))


def _optimizer(ctx: Context, node: cst.BaseExpression) -> str | None:
    """The class of torch.optim that an expression is an instance of."""
    name = getattr(ctx.kind(node), "type", None)
    return name if isinstance(name, str) and name.startswith(_OPTIM) else None


def _makes_one(ctx: Context, call: cst.Call) -> bool:
    return (ctx.facts.callee(call) or "").startswith(_OPTIM)


def _kept(ctx: Context, node: cst.Assign) -> str | None:
    """The name of the attribute of self that an optimiser is kept under."""
    target, value = node.targets[0].target, node.value
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return None
    if not ctx.is_self(target.value) or not isinstance(value, cst.Call):
        return None
    if not _makes_one(ctx, value):
        return None
    for inner in ctx.source.index.within(value, cst.Call, cst.NamedExpr, cst.Yield, cst.Await):
        if not isinstance(inner, cst.Call):
            return None
        func = inner.func
        last = func.attr if isinstance(func, cst.Attribute) else func
        if inner is not value and (not isinstance(last, cst.Name) or last.value not in _ARGUMENTS):
            return None
    return target.attr.value


def _only_training(ctx: Context, name: str) -> bool:
    """Whether every attribute of that name is an optimiser, so that what reads it is a finding, or goes with it."""
    tree = ctx.facts.tree
    if asked_by_text(ctx, name):
        return False
    for one in tree.of_type(cst.Attribute):
        if one.attr.value != name:
            continue
        around = tree.around(one)
        assign = next((a for a in reversed(around) if isinstance(a, cst.Assign)), None)
        if assign is not None and isinstance(around[-1], cst.AssignTarget):
            value = assign.value
            if not isinstance(value, cst.Call) or not _makes_one(ctx, value):
                return False
        elif isinstance(around[-1], cst.Del) or _optimizer(ctx, one) is None:
            return False
    return True
