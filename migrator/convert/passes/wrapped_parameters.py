"""Attributes that are given what a call makes of a new parameter, where torch may keep that parameter itself."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.returned import ANY, returned_arguments
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_SAME = frozenset("contiguous cpu cuda requires_grad_ to".split())
"""Methods that give the parameter itself where its device and dtype are those asked for."""
_PERHAPS = frozenset("float double half bfloat16 type type_as detach clone".split())
"""Methods that may give it, or a tensor that torch registers nowhere."""


@converts(cst.Assign, values=(cst.Call,), when=lambda ctx: "Parameter" in ctx.words)
def kept(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.w = nn.Parameter(x).float()``: a parameter if x has that dtype, else a plain tensor.

    Raises:
      Failure: it is not known which, or the port would keep the other.
    """
    if not any(isinstance(one.target, cst.Attribute) for one in node.targets):
        return None
    if _is_unclear(rw.ctx, node.value):
        what = "torch registers what this gives only where it is the parameter itself"
        raise Failure(node, "API009", what, "make the parameter of the finished tensor")
    return None


def _is_unclear(ctx: Context, value: cst.BaseExpression) -> bool:
    if not isinstance(value, cst.Call) or _is_parameter(ctx, value):
        return False
    func = value.func
    if isinstance(func, cst.Attribute) and _made(ctx, func.value):
        name = func.attr.value
        typed = any(isinstance(ctx.kind(one.value), k.DType) for one in value.args)
        if name in _PERHAPS or (name == "to" and typed):
            return True
        if name not in _SAME:
            return name.endswith("_") and not name.endswith("__")
        return _is_unclear(ctx, func.value)
    handed = [one for one in value.args if _is_parameter(ctx, one.value)]
    if not handed:
        return False
    if isinstance(syntax.unparenthesized(func), cst.Lambda):
        return True
    name = ctx.facts.callee(value) or ""
    if name.startswith("torch."):
        last = name.rpartition(".")[2]
        return last.endswith("_") and not last.endswith("__")
    info = ctx.facts.names.get(name)
    if info is None:
        return False
    given = returned_arguments(ctx, info)
    return ANY in given or any(
        param in given and item in handed for param, item in bound_arguments(value, info)
    )


def _made(ctx: Context, node: cst.BaseExpression) -> bool:
    """``nn.Parameter(x)``, ``nn.Parameter(x).contiguous()``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if _is_parameter(ctx, node):
            return True
        if node.func.attr.value not in _SAME:
            return False
        node = node.func.value
    return _is_parameter(ctx, node)


def _is_parameter(ctx: Context, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and ctx.facts.callee(node) == "torch.nn.Parameter"
