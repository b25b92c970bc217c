"""Functions within functions, and lambdas, that make modules: they take ``rngs`` where a class does they stand for."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.handed_on import is_handed_on
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.facts import FunctionInfo
from migrator.infer.wrapping import hands_keywords
from migrator.source import dotted


@converts(cst.Lambda)
def making(rw: Rewriter, node: cst.Lambda) -> Any:
    """``lambda d: nn.LayerNorm(d)`` → ``lambda d, rngs=rngs: LayerNorm(d, rngs=rngs)``.

    Who calls it may call a class as well (``norm: Callable[..., nn.Module]``), and hands ``rngs`` on.
    """
    ctx = rw.ctx
    if ctx.frames and not ctx.hands_makers:
        return None
    if not _makes(ctx, node.body) or _is_called(ctx, node):
        return None
    if any(ctx.plan.how(frame.info) == "self" for frame in ctx.frames):
        return None
    with ctx.no_hoisting():
        made = rw.rebuild(node)
    if not ctx.hands_makers and "rngs" not in syntax.names(made.body):
        return made
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
    made = _with_optional(ctx, params, body)
    if made is not params:
        _check_all_handed_on(made, body, info.node)
    return made


def _check_all_handed_on(params: cst.Parameters, body: cst.CSTNode, node: cst.FunctionDef) -> None:
    """A function that takes ``rngs`` for itself has to give it to what it hands its keywords on to."""
    every = params.star_kwarg.name.value if params.star_kwarg is not None else None
    for call in syntax.walk(body) if every is not None else ():
        if not isinstance(call, cst.Call) or any(_keyword(a) == "rngs" for a in call.args):
            continue
        if any(a.star == "**" and dotted(a.value) == every for a in call.args):
            what = f"{node.name.value} makes layers, and hands all its keywords on as well"
            advice = f"write `rngs` out: take it beside **{every}, and hand it to {syntax.code(call.func)}"
            raise Failure(node, "API005", what, advice)


def _keyword(argument: cst.Arg) -> str:
    return argument.keyword.value if argument.keyword is not None else ""


def check_decorator(
    ctx: Context, decorator: cst.Decorator, decorated: FunctionInfo | None = None
) -> None:
    """A function that takes ``rngs`` decorates nothing by its name alone: Python hands it what it decorates only.

    What is decorated takes ``rngs`` where the decorator's function is called with them, and has to be handed them.
    """
    inner = decorator.decorator
    maker = inner.func if isinstance(inner, cst.Call) else inner
    made = ctx.facts.kinds.get(maker)
    function = ctx.facts.names.get(made.name) if isinstance(made, k.Function) else None
    if decorated is not None and function is not None and ctx.plan.how(decorated) == "param":
        settled = function.settled
        if not (settled.hands_keywords if settled is not None else hands_keywords(function.node)):
            what = f"{decorated.short} takes a generator, which {function.short} does not hand on to it"
            advice = "call what is decorated with all keywords of the call: `rngs` is among them"
            raise Failure(decorator, "API005", what, advice)
    kind = ctx.facts.kinds.get(inner)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is not None and ctx.plan.how(info) == "param":
        what = f"{info.short} makes modules, and no decorator is handed a generator"
        advice = (
            f"call it below the definition, with `rngs`: `name = {info.short}(name, rngs=rngs)`"
        )
        raise Failure(decorator, "API005", what, advice)


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
    if params.star_kwarg is not None and not used:
        return (
            params  # it is among these, and goes where they go: ``return builder(*args, **kwargs)``
        )
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
