"""Writes through a mask of what is computed, element by element, of what the same mask selects."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation
from migrator.convert.context import Failure
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._selected import Write, selected_write


def _write(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> Write | None:
    ctx = rw.ctx
    found = selected_write(
        node,
        lambda call: ctx.facts.callee(call),
        lambda one: k.scalar_type(ctx.kind(one)) is not None,
        lambda one: getattr(ctx.kind(one), "rank", None),
    )
    if found is None or not isinstance(ctx.kind(found.target.value), k.Tensor):
        return None
    mask = ctx.kind(found.mask)
    if not isinstance(mask, k.Tensor) or mask.dtype != "bool" or mask.rank == 0:
        return None
    if not found.linear and any(_has_axes(ctx.kind(one)) for one in found.singles):
        return None  # their gradient is a sum, in which one NaN is enough
    ranks = {getattr(ctx.kind(one.value), "rank", None) for one in found.selections} - {None}
    return found if len(ranks) < 2 else None


def _has_axes(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and kind.rank != 0


@converts(cst.Assign, targets=(cst.Subscript,))
@converts(cst.AugAssign)
def selected_values(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> Any:
    """``x[m] = a * y[m]`` → ``x = jnp.where(m, a * y, x)``; of ``log(y[m])`` the gradient is taken where m holds."""
    from migrator.convert.passes.indexing import binary, same_rank, selects_the_same
    from migrator.convert.passes.mutation import narrow_dtypes

    found = _write(rw, node)
    if found is None:
        return None
    target, ctx = found.target, rw.ctx
    if isinstance(node, cst.Assign) and selects_the_same(rw, target, node.value):
        return None  # x[m] = y[m]
    number = k.scalar_type(ctx.kind(node.value)) is not None
    if isinstance(node, cst.AugAssign) and number and found.linear:
        return None  # x[m] += 1
    targets.check_named(ctx, target)
    check_mutation(ctx, node, target)
    if ctx.no_grad and not ctx.in_init:
        what = "what a mask selects is written where no gradient is recorded"
        raise Failure(node, "MUT002", what, "use jnp.where on all elements")
    parts = (*found.selections, *found.singles)
    made: dict[cst.CSTNode, cst.BaseExpression] = {p: _everywhere(rw, found, p) for p in parts}
    ctx.everywhere.update(made)
    base = rw.visit(target.value)
    value = rw.visit(node.value)
    if isinstance(node, cst.AugAssign):
        value = binary(_guarded(rw, found, base), type(node.operator).__name__, value)
    mask = rw.visit(found.mask)
    args = [cst.Arg(mask), cst.Arg(syntax.unparenthesized(value)), cst.Arg(base)]
    if same_rank(rw, target.value, found.mask) and not any(narrow_dtypes(rw)):
        ctx.helpers.use("jnp")
        function: cst.BaseExpression = syntax.parse("jnp.where")
    else:
        function = cst.Name(ctx.helpers.need(module_file("rules.compat.masks"), "where_leading"))
    return targets.assign(rw, target.value, syntax.with_args(cst.Call(function), args))


def _everywhere(rw: Rewriter, found: Write, one: cst.BaseExpression) -> cst.BaseExpression:
    """``y`` for ``y[m]``."""
    whole = next((s.value for s in found.selections if s is one), None)
    if whole is not None:
        return _guarded(rw, found, rw.visit(whole))
    made: cst.BaseExpression = rw.visit(one)
    if found.linear:
        return made
    like = rw.visit(found.selections[0].value if found.selections else found.target.value)
    rw.ctx.helpers.use("jnp")
    spread = syntax.parse("jnp.broadcast_to(_x, _y.shape)")
    return _guarded(rw, found, syntax.substitute(spread, {"_x": made, "_y": like}))


def _guarded(rw: Rewriter, found: Write, whole: cst.BaseExpression) -> cst.BaseExpression:
    if found.linear:
        return whole
    name = rw.ctx.helpers.need(module_file("rules.compat.masks"), "only_where")
    args = [cst.Arg(rw.visit(found.mask)), cst.Arg(syntax.unparenthesized(whole))]
    return syntax.with_args(cst.Call(cst.Name(name)), args)
