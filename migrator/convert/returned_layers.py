"""What functions of the file give as layers: ``self.net = build(4)`` whose ``build`` returns ``nn.Sequential(*layers)``."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k


def made_sequentials(ctx: Context, call: cst.BaseExpression) -> list[cst.Call]:
    """The calls that make a Sequential: ``nn.Sequential(…)`` itself, and all that a function of the file may give.

    Those of a function have layers; where it may give something else there are none.
    """
    if not isinstance(call, cst.Call):
        return []
    if ctx.facts.callee(call) == "torch.nn.Sequential":
        return [call]
    info = ctx.facts.names.get(ctx.facts.callee(call) or "")
    if info is None or info.settled is not None or not ctx.source.index.has(info.node):
        return []
    found: list[cst.Call] = []
    for one in ctx.facts.tree.within(info.node.body, cst.Return):
        made = _made(ctx, info.node, one.value)
        if not made:
            return []
        found += made
    return found


def _made(
    ctx: Context, function: cst.FunctionDef, value: cst.BaseExpression | None
) -> list[cst.Call]:
    """``nn.Sequential(…)`` with layers, or that of a name that is given nothing else."""
    if isinstance(value, cst.Call):
        sequential = ctx.facts.callee(value) == "torch.nn.Sequential" and bool(value.args)
        only = value.args[0] if len(value.args) == 1 else None
        told = only is None or only.star or not isinstance(ctx.kind(only.value), k.Unknown)
        return [value] if sequential and told else []  # what is handed over may have names
    if not isinstance(value, cst.Name):
        return []
    given = [
        assign.value
        for assign in ctx.facts.tree.within(function.body, cst.Assign)
        if any(value.deep_equals(target.target) for target in assign.targets)
    ]
    every = [_made(ctx, function, one) for one in given if isinstance(one, cst.Call)]
    return (
        [one for made in every for one in made] if len(every) == len(given) and all(every) else []
    )
