"""Dicts that are the layers of a Sequential and nothing else: ``nn.Sequential(OrderedDict({"act": nn.ReLU()}))``."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator.convert.context import Context


def is_ordered(ctx: Context, around: Sequence[cst.CSTNode]) -> bool:
    """``nn.Sequential(OrderedDict({"act": nn.ReLU(inplace=True)}))``: the entry of a dict that is nothing else."""
    match around:
        case [*_, cst.Call() as whole, cst.Arg(), cst.Call() as made, cst.Arg(), cst.Dict(), _]:
            ordered = ctx.facts.callee(made) == "collections.OrderedDict"
            return ordered and ctx.facts.callee(whole) == "torch.nn.Sequential"
        case [
            *above,
            cst.Assign(targets=[cst.AssignTarget(cst.Name(name))]),
            cst.Call() as made,
            cst.Arg(),
            cst.Dict(),
            _,
        ] if ctx.facts.callee(made) == "collections.OrderedDict":
            function = next((one for one in above if isinstance(one, cst.FunctionDef)), None)
            names = ctx.facts.tree.within(function, cst.Name) if function is not None else []
            reads = [ctx.facts.tree.around(one) for one in names if one.value == name]
            return bool(reads) and all(_is_run(ctx, one) for one in reads)
    return False


def _is_run(ctx: Context, around: Sequence[cst.CSTNode]) -> bool:
    """Whether a name stands in ``ops = …`` or in ``nn.Sequential(ops)``."""
    match around:
        case [*_, cst.Call() as call, cst.Arg(star="")]:
            return ctx.facts.callee(call) == "torch.nn.Sequential" and len(call.args) == 1
        case [*_, cst.Assign(targets=[_]), cst.AssignTarget()]:
            return True
    return False
