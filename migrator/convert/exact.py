"""What is known of an object's class for sure: a hint, or ``isinstance``, may mean a class derived from it."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k


def is_exact(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a layer is an attribute that nothing but constructor calls of its class are assigned to."""
    from migrator.convert.passes.held import assigned

    kind = ctx.facts.kind(node)
    if not isinstance(node, cst.Attribute) or ctx.owner is None or not ctx.is_self(node.value):
        return False
    if not isinstance(kind, k.Module) or "|" in kind.cls:
        return False
    values = assigned(ctx, ctx.owner, node.attr.value)
    return bool(values) and all(
        isinstance(value, cst.Call) and ctx.facts.kind(value.func) == k.Class(kind.cls)
        for value in values
    )
