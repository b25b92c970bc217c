"""``w = m.weight.data``, then ``w *= 2``: a name for a parameter of a layer whose class only a run tells."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.infer import kinds as k


def check_named_weight(ctx: Context, node: cst.CSTNode, name: cst.Name, sure: bool = True) -> None:
    """Raise a Failure where such a name is written in place: what it stands for is a value in the output.

    Args:
      sure: the name is that of a tensor; else of a number perhaps, where the layer may be something else.
    """
    if ctx.frame is None:
        return
    for value in _given(ctx, ctx.frame.info.node.body, name.value):
        held, data = value, False
        while isinstance(held, cst.Attribute) and held.attr.value == "data":
            held, data = held.value, True
        if _of_unknown_layer(ctx, held, sure or data or bool(ctx.no_grad)):
            raise Failure(
                node,
                "MUT002",
                f"`{name.value}` is a parameter whose layer is not known, and is written in place",
                "write to the parameter by the name of its layer: `m.weight.data.mul_(2)`",
            )


def _given(ctx: Context, body: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """The values that a function gives to a name."""
    found = []
    for item in ctx.facts.tree.within(body, cst.Assign):
        for one in item.targets:
            target, value = one.target, item.value
            if isinstance(target, cst.Name) and target.value == name:
                found.append(value)
            if isinstance(target, (cst.Tuple, cst.List)) and isinstance(value, cst.Tuple):
                pairs = zip(target.elements, value.elements, strict=False)
                found += [
                    given.value
                    for one, given in pairs
                    if isinstance(one.value, cst.Name) and one.value.value == name
                ]
    return found


def _of_unknown_layer(ctx: Context, node: cst.BaseExpression, sure: bool) -> bool:
    from migrator.convert.passes.targets import found_at_run_time

    unknown = found_at_run_time(ctx, node)
    return unknown is not None and (sure or isinstance(ctx.kind(unknown.value), k.Module))
