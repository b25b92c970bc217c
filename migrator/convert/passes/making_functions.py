"""Functions within functions, and lambdas, that make modules: they take ``rngs`` where a class does they stand for."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import is_handed_on
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.facts import FunctionInfo


@converts(cst.Lambda)
def making(rw: Rewriter, node: cst.Lambda) -> Any:
    """``lambda d: nn.LayerNorm(d)`` → ``lambda d, rngs=rngs: LayerNorm(d, rngs=rngs)``.

    Who calls it may call a class as well (``norm: Callable[..., nn.Module]``), and hands ``rngs`` on.
    """
    ctx = rw.ctx
    if not ctx.hands_makers or not _makes(ctx, node.body) or _is_called(ctx, node):
        return None
    if any(ctx.plan.how(frame.info) == "self" for frame in ctx.frames):
        return None
    with ctx.no_hoisting():
        made = rw.rebuild(node)
    return syntax.changed(made, params=_with_optional(ctx, made.params, made.body))


def for_callers(
    ctx: Context, info: FunctionInfo, params: cst.Parameters, body: cst.CSTNode
) -> cst.Parameters:
    """The parameters of a function within a function; with ``rngs`` where it makes modules and is handed on."""
    outer = info.outer
    if outer is None or info.owner is not None or not ctx.hands_makers:
        return params
    returns = info.returns.inner if isinstance(info.returns, k.Optional) else info.returns
    if not isinstance(returns, k.Module) or ctx.plan.how(outer) == "self":
        return params
    if not is_handed_on(ctx, info):
        return params
    return _with_optional(ctx, params, body)


def _is_called(ctx: Context, node: cst.Lambda) -> bool:
    parent = ctx.source.index.around(node)[-1]
    return isinstance(parent, cst.Call) and parent.func is node


def _makes(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression calls what gives a module."""
    if isinstance(node, cst.IfExp):
        return _makes(ctx, node.body) or _makes(ctx, node.orelse)
    kind = ctx.kind(node)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(node, cst.Call) and isinstance(kind, k.Module)


def _with_optional(ctx: Context, params: cst.Parameters, body: cst.CSTNode) -> cst.Parameters:
    """The parameters with an ``rngs`` at the end, by default what stands around the function if it uses one."""
    every = [*params.posonly_params, *params.params, *params.kwonly_params]
    if any(p.name.value == "rngs" for p in every):
        return params
    used = "rngs" in syntax.names(body)
    if used and not ctx.frames:
        ctx.rngs_by_definitions = True  # a default is computed where the function stands
    space = cst.SimpleWhitespace("")
    new = cst.Param(
        cst.Name("rngs"),
        default=cst.Name("rngs" if used else "None"),
        equal=cst.AssignEqual(space, space),
    )
    keyword_only = params.kwonly_params or params.star_arg != cst.MaybeSentinel.DEFAULT
    group = "kwonly_params" if keyword_only else "params"
    return syntax.changed(params, **{group: [*getattr(params, group), new]})
