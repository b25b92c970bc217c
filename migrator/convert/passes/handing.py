"""Functions of the project that draw random numbers and are handed on as values take their generator along."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_HANDING = (cst.Arg, cst.Return, cst.BooleanOperation, cst.IfExp, cst.Assign, cst.Element)


@converts(cst.Name, cst.Attribute)
def handed_on(rw: Rewriter, node: cst.Name | cst.Attribute) -> Any:
    """``named_apply(init_weights, model)`` → ``named_apply(functools.partial(init_weights, rngs=rngs), model)``."""
    rngs = _generator(rw.ctx, node)
    if rngs is None or not isinstance(rw.ctx.source.index.around(node)[-1], _HANDING):
        return None
    rw.ctx.helpers.use("functools")
    call = cst.Call(syntax.parse("functools.partial"), [cst.Arg(node)])
    return syntax.add_keyword(call, "rngs", rngs)


@converts(cst.Call)
def partial_of_drawing(rw: Rewriter, node: cst.Call) -> Any:
    """``partial(init_weights, std=0.1)`` of a function that draws."""
    if rw.ctx.facts.callee(node) != "functools.partial" or not node.args:
        return None
    first = node.args[0].value
    rngs = _generator(rw.ctx, first) if isinstance(first, (cst.Name, cst.Attribute)) else None
    if rngs is None:
        return None
    args = [node.args[0], *(rw.visit(a) for a in node.args[1:])]
    return syntax.add_keyword(syntax.with_args(node, args), "rngs", rngs)


def _generator(ctx: Context, node: cst.Name | cst.Attribute) -> cst.BaseExpression | None:
    """The generator that a function of the project needs which returns nothing: one that initialises."""
    kind = ctx.facts.kinds.get(node)
    if type(kind) is not k.Function or ctx.frame is None:
        return None
    info = ctx.facts.names.get(kind.name)
    if info is None or info.outer is not None or info.returns != k.NONE:
        return None
    return ctx.rngs(node) if ctx.plan.how(info) == "param" else None
