"""Places that an index lists twice: torch's gradient of what is written there counts each, JAX's the one that stays."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.listed_parameters import given
from migrator.infer import kinds as k


def check_repeated(ctx: Context, target: cst.Subscript, value: cst.BaseExpression | None) -> None:
    """Raise a Failure where a tensor is written to places that are written out, and one of them twice."""
    off = ctx.no_grad or (ctx.frame is not None and ctx.frame.no_grad)
    if off or ctx.in_init or value is None or k.scalar_type(ctx.kind(value)) is not None:
        return
    for element in target.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        places = _written_out(ctx, index)
        if len(set(places)) < len(places):
            what = f"`{syntax.code(target)}` is written at one place more than once, where gradients differ"
            raise Failure(target, "MUT002", what, "list each place once")


def _written_out(ctx: Context, node: cst.BaseExpression | None) -> list[str]:
    """The numbers of ``[0, 0, 1]``, ``torch.tensor([0, 0, 1])``, and of a local name of these."""
    if isinstance(node, cst.Name):
        node = given(ctx, node)
    if isinstance(node, cst.Call) and ctx.facts.callee(node) in (
        "torch.tensor",
        "torch.LongTensor",
    ):
        node = node.args[0].value if node.args else None
    if not isinstance(node, (cst.List, cst.Tuple)):
        return []
    values = [e.value for e in node.elements]
    return [syntax.code(one) for one in values if isinstance(one, cst.Integer)]
