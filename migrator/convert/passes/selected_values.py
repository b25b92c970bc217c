"""Writes through a mask of what is computed, element by element, of what the same mask selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.skipping import pure_call
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._selected import Write, index_of, selected_write


@dataclass
class Held:
    """Names for what a mask selects, in ``h = x[m]`` before ``x[m] = 2 * h + 1``.

    Attributes:
      statements: those that give such a name, which go.
      reads: each read of one, and what it holds.
    """

    statements: set[cst.CSTNode] = field(default_factory=set)
    reads: dict[cst.CSTNode, cst.Subscript] = field(default_factory=dict)


def held(ctx: Context) -> Held:
    """The names of a file, looked for once; what was said against their statements is taken back."""
    if ctx.held is None:
        ctx.held = Held()
        tree = ctx.source.index
        flagged = [node for node, (rule, _, _) in ctx.blocked.items() if rule == "DYN001"]
        for node in flagged:
            assign = tree.around(node)[-1] if tree.has(node) else None
            if isinstance(assign, cst.Assign) and assign.value is node:
                _hold(ctx, assign, flagged)
    found: Held = ctx.held
    return found


def _hold(ctx: Context, assign: cst.Assign, flagged: Sequence[cst.CSTNode]) -> None:
    """Note one name, where all that is asked of it is written through its mask in a later line of the same block."""
    tree, value = ctx.source.index, assign.value
    target = assign.targets[0].target
    mask = index_of(value)
    if len(assign.targets) != 1 or not isinstance(target, cst.Name) or mask is None:
        return
    *_, block, line, _ = [*tree.around(assign), assign]
    function = next(
        (n for n in reversed(tree.around(assign)) if isinstance(n, cst.FunctionDef)), None
    )
    if function is None or not isinstance(block, cst.IndentedBlock) or len(line.body) != 1:
        return
    names = [n for n in tree.within(function, cst.Name) if n.value == target.value]
    touched = {target.value, *syntax.names(value)}
    for after in block.body[block.body.index(line) + 1 :]:
        here = {n.value for n in tree.within(after, cst.Name)}
        if here.isdisjoint(touched):
            if _writes(ctx, after):
                return  # perhaps to the same memory under another name
            continue
        body = after.body if isinstance(after, cst.SimpleStatementLine) else ()
        small = body[0] if len(body) == 1 else None
        if not isinstance(small, cst.Assign | cst.AugAssign):
            return
        reads = [n for n in tree.within(small.value, cst.Name) if n.value == target.value]
        if not reads or len(reads) != len(names) - 1:
            return
        holds = dict.fromkeys(reads, cst.ensure_type(value, cst.Subscript))
        if written(ctx, small, holds) is None:
            return
        assert ctx.held is not None
        ctx.held.statements.add(assign)
        ctx.held.reads.update(holds)
        for one in flagged:
            if one is value or tree.holds(small, one) or one is small:
                ctx.blocked.pop(one, None)
        return


def _writes(ctx: Context, statement: cst.CSTNode) -> bool:
    """Whether a statement may write in place."""
    tree = ctx.source.index
    if tree.within(statement, cst.AugAssign):
        return True
    if any(
        isinstance(one.target, cst.Subscript) for one in tree.within(statement, cst.AssignTarget)
    ):
        return True
    return not all(pure_call(ctx, call, set()) for call in tree.within(statement, cst.Call))


def _write(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> Write | None:
    return written(rw.ctx, node, held(rw.ctx).reads)


def written(
    ctx: Context, node: cst.Assign | cst.AugAssign, holds: Mapping[cst.CSTNode, cst.Subscript]
) -> Write | None:
    """The write through a mask that a statement is."""
    found = selected_write(
        node,
        lambda call: ctx.facts.callee(call),
        lambda one: k.scalar_type(ctx.kind(one)) is not None,
        lambda one: getattr(ctx.kind(one), "rank", None),
        holds.get,
    )
    if found is None or not isinstance(ctx.kind(found.target.value), k.Tensor):
        return None
    mask = ctx.kind(found.mask)
    if not isinstance(mask, k.Tensor) or mask.dtype != "bool" or mask.rank == 0:
        return None
    if not found.linear and any(_has_axes(ctx.kind(one)) for one in found.singles):
        return None  # their gradient is a sum, in which one NaN is enough
    wholes = [holds.get(one, one).value for one in found.selections]  # type: ignore[attr-defined]
    ranks = {getattr(ctx.kind(one), "rank", None) for one in wholes} - {None}
    return found if len(ranks) < 2 else None


def _has_axes(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and kind.rank != 0


@converts(cst.Assign, targets=(cst.Subscript,))
@converts(cst.AugAssign)
def selected_values(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> Any:
    """``x[m] = a * y[m]`` → ``x = jnp.where(m, a * y, x)``; of ``log(y[m])`` the gradient is taken where m holds."""
    from migrator.convert.passes.item_writes import binary, same_rank, selects_the_same
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
    whole = next((_whole(rw, s) for s in found.selections if s is one), None)
    if whole is not None:
        return _guarded(rw, found, rw.visit(whole))
    made: cst.BaseExpression = rw.visit(one)
    if found.linear:
        return made
    like = rw.visit(_whole(rw, found.selections[0]) if found.selections else found.target.value)
    rw.ctx.helpers.use("jnp")
    spread = syntax.parse("jnp.broadcast_to(_x, _y.shape)")
    return _guarded(rw, found, syntax.substitute(spread, {"_x": made, "_y": like}))


def _whole(rw: Rewriter, selection: cst.BaseExpression) -> cst.BaseExpression:
    """``y`` of ``y[m]``, and of the name that holds it."""
    whole = held(rw.ctx).reads.get(selection, selection)
    assert isinstance(whole, cst.Subscript)
    return whole.value


@converts(cst.Assign, when=lambda ctx: bool(held(ctx).statements))
def holding(rw: Rewriter, node: cst.Assign) -> Any:
    """``h = x[m]`` goes: what is asked of it is computed everywhere."""
    return [] if node in held(rw.ctx).statements else None


def _guarded(rw: Rewriter, found: Write, whole: cst.BaseExpression) -> cst.BaseExpression:
    if found.linear:
        return whole
    name = rw.ctx.helpers.need(module_file("rules.compat.masks"), "only_where")
    args = [cst.Arg(rw.visit(found.mask)), cst.Arg(syntax.unparenthesized(whole))]
    return syntax.with_args(cst.Call(cst.Name(name)), args)
