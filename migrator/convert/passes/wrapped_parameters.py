"""Attributes that are given what a call makes of a new parameter, where torch may keep that parameter itself."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.passes.targets import makes_parameter, new_parameters
from migrator.convert.returned import ANY, returned_arguments
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_SAME = frozenset("contiguous cpu cuda requires_grad_ to".split())
"""Methods that give the parameter itself where its device and dtype are those asked for."""
_PERHAPS = frozenset("float double half bfloat16 type type_as detach clone".split())
"""Methods that may give it, or a tensor that torch registers nowhere."""


@converts(cst.Assign, when=lambda ctx: "Parameter" in ctx.words)
def kept(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.w = nn.Parameter(x).float()``: a parameter if x has that dtype, else a plain tensor.

    Raises:
      Failure: it is not known which, or the port would keep the other.
    """
    if any(isinstance(one.target, cst.Attribute) for one in node.targets):
        if any(_is_unclear(rw.ctx, one) for one in _either(node.value)):
            raise _unclear(node)
    elif _is_of_itself(rw.ctx, node):
        raise _unclear(node)
    return None


@converts(cst.Call, when=lambda ctx: "Parameter" in ctx.words)
def handed(rw: Rewriter, node: cst.Call) -> Any:
    """``given_back(nn.Parameter(x))`` of a function that may give what it is handed, and does more than to fill it.

    Raises:
      Failure: what it gives is a parameter in torch, and a plain array in the port.
    """
    ctx, tree = rw.ctx, rw.ctx.facts.tree
    own = ctx.facts.names.get(ctx.facts.callee(node) or "")
    given = [one for one in node.args if _is_parameter(ctx, one.value)]
    if own is None or not given or not tree.has(node) or not _may_give(ctx, node, given):
        return None
    above = tree.parent(node)
    if isinstance(above, cst.Expr) or any(
        isinstance(one, cst.Call) and (ctx.facts.callee(one) or "").startswith("torch.nn.Parameter")
        for one in tree.around(node)
    ):
        return None
    raise _unclear(node)


def _is_of_itself(ctx: Context, node: cst.Assign) -> bool:
    """``w = given_back(w)`` of what was ``nn.Parameter(x)`` before."""
    target, value = node.targets[0].target, node.value
    if len(node.targets) != 1 or not isinstance(target, cst.Name) or ctx.frame is None:
        return False
    if not isinstance(value, cst.Call):
        return False
    given = [
        one
        for one in value.args
        if isinstance(one.value, cst.Name) and one.value.value == target.value
    ]
    if not given or not _may_give(ctx, value, given):
        return False
    return any(
        _is_parameter(ctx, one.value)
        and any(syntax.code(to.target) == target.value for to in one.targets)
        for one in ctx.facts.tree.within(ctx.frame.info.node.body, cst.Assign)
    )


def _unclear(node: cst.CSTNode) -> Failure:
    what = "torch registers what this gives only where it is the parameter itself"
    return Failure(node, "API009", what, "make the parameter of the finished tensor")


def _either(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """``a`` and ``b`` of ``a if c else b``."""
    if isinstance(value, cst.IfExp):
        return (*_either(value.body), *_either(value.orelse))
    return (value,)


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
    given = [one for one in value.args if _is_parameter(ctx, one.value)]
    if given and isinstance(syntax.unparenthesized(func), cst.Lambda):
        return True
    name = ctx.facts.callee(value) or ""
    if name.startswith("torch."):
        last = name.rpartition(".")[2]
        return bool(given) and last.endswith("_") and not last.endswith("__")
    names = new_parameters(ctx, ctx.frame.info.node.body) if ctx.frame is not None else ()
    given += [
        one for one in value.args if isinstance(one.value, cst.Name) and one.value.value in names
    ]
    return bool(given) and _may_give(ctx, value, given)


def _may_give(ctx: Context, call: cst.Call, given: list[cst.Arg]) -> bool:
    """Whether a function of the project may give what it is handed by one of some arguments."""
    info = ctx.facts.names.get(ctx.facts.callee(call) or "")
    if info is None or makes_parameter(ctx, call):
        return False
    told = returned_arguments(ctx, info)
    return ANY in told or any(
        param in told and item in given for param, item in bound_arguments(call, info)
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
