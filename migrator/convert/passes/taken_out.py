"""Numbers that are taken out of tensors and only computed with: ``float(x)``, ``x.item()``, ``max(int(n), 1)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._numbers import (
    bound_once,
    chosen,
    counts_up,
    extremes,
    is_whole,
    only_computed_with,
    taken_from,
)


@converts(cst.Call, called=("builtins.max", "builtins.min"))
def extreme(rw: Rewriter, node: cst.Call) -> Any:
    """``max(x.sum(), 1)`` and ``max(int(m.sum()), 1)``, where it is only computed with: what Python would choose."""
    ctx, callee = rw.ctx, rw.ctx.facts.callee
    sides = extremes(node, callee)
    if sides is None or not ctx.source.index.has(node):
        return None
    if not chosen(node, ctx.source.index.around(node), ctx.kind, callee):
        return None
    given = sides
    sides = bound_once(sides, ctx.source.index.around(node), callee)
    if ctx.concrete and any(taken_from(one, callee) is not None for one in sides):
        return None
    args = [cst.Arg(rw.visit(one)) for one in given]
    largest = callee(node) == "builtins.max"
    if all(is_whole(one, ctx.kind, callee) for one in sides):  # nothing to differentiate, no NaN
        ctx.helpers.use("jnp")
        function = syntax.parse("jnp.maximum" if largest else "jnp.minimum")
        return syntax.with_args(cst.Call(function), args)
    helper = "larger" if largest else "smaller"
    name = ctx.helpers.need(module_file("rules.compat.pointwise"), helper)
    return syntax.with_args(cst.Call(cst.Name(name)), args)


@converts(cst.Call, called=("builtins.float", "builtins.int", "Tensor.item"))
def counted(rw: Rewriter, node: cst.Call) -> Any:
    """``float(n)`` of an integer tensor, where it is only computed with → ``1.0 * n``, whose dtype is as weak.

    ``x.item()`` of a float tensor is x without its gradient, in files that name no type of fewer digits."""
    ctx, callee = rw.ctx, rw.ctx.facts.callee
    x = taken_from(node, callee)
    if x is None or not ctx.source.index.has(node):
        return None
    if not only_computed_with(node, ctx.source.index.around(node), ctx.kind, callee):
        return None
    name, dtype = callee(node), ctx.kind(x).dtype  # type: ignore[attr-defined]
    made_float = name == "builtins.float"
    if ctx.concrete and not (made_float and dtype == "int"):
        return None
    wanted = without_axes(ctx, ctx.kind(x), proved=name == "Tensor.item")
    if name == "builtins.int":
        wanted += "" if dtype == "int" else ".astype(int)"
    elif made_float and dtype != "float":
        wanted = f"1.0 * {wanted}"
    if name != "builtins.int" and dtype != "int":
        ctx.helpers.use("lax")
        wanted = f"lax.stop_gradient({wanted})"
    return syntax.substitute(syntax.parse(wanted), {"__x__": rw.visit(x)})


def without_axes(ctx: Context, kind: k.Kind, *, proved: bool = False) -> str:
    """A template for the one element of a tensor ``__x__``; what may only be taken for a tensor may be a number."""
    if getattr(kind, "rank", None) == 0:
        return "__x__"
    if proved or kind != k.TENSOR:
        return "__x__.reshape(())"
    ctx.helpers.use("jnp")
    return "jnp.reshape(__x__, ())"


@converts(cst.Call, called=("Tensor.tolist",))
def counted_up(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.arange(1, x.dim()).tolist()`` → ``list(range(1, x.ndim))``"""
    facts = rw.ctx.facts
    bounds = counts_up(node, facts.callee, lambda one: k.scalar_type(facts.kind(one)) == "int")
    if bounds is None:
        return None
    numbers = syntax.with_args(cst.Call(cst.Name("range")), [rw.visit(a) for a in bounds])
    return cst.Call(cst.Name("list"), [cst.Arg(numbers)])
