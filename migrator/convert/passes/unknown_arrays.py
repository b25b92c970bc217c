"""Methods of what may be a tensor or an array, written so that they hold for both."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


def _squeezes(ctx: Context) -> bool:
    return ".squeeze(" in ctx.source.text


@converts(cst.Call, when=_squeezes)
def squeezed(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``y.squeeze(1)`` of something unknown: a tensor keeps an axis of another size, an array of JAX raises there.

    So does one of numpy, whose callers do not come with such an axis."""
    ctx, func = rw.ctx, node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "squeeze" or len(node.args) != 1:
        return None
    if node.args[0].star or node.args[0].keyword is not None:
        return None
    if not isinstance(ctx.kind(func), k.Unknown) or not isinstance(ctx.kind(func.value), k.Unknown):
        return None
    if k.scalar_type(ctx.kind(node.args[0].value)) != "int":
        return None
    if any(info.method("squeeze") for info in ctx.facts.classes.values()):
        return None
    name = ctx.helpers.need(module_file("rules.compat.shape"), "squeeze")
    args = [cst.Arg(rw.visit(func.value)), cst.Arg(rw.visit(node.args[0].value))]
    return syntax.with_args(cst.Call(cst.Name(name)), args)
