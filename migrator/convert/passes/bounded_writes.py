"""``mask[i, :n] = 1`` with a bound that only the data tells: the whole row is written, by ``jnp.where`` of the places.

What is read within such bounds has no static shape; a number that is written there needs none.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes.freezing import forward_reaches
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from migrator.infer.items import items
from rules.definitions import module_file


def bounded(ctx: Context) -> set[cst.CSTNode]:
    """The targets of a file's writes within bounds that are values of tensors, looked for once; what was said against
    their bounds is taken back."""
    if ctx.bounded is None:
        ctx.bounded = set()
        tree = ctx.source.index
        for node in [n for n, (rule, _, _) in ctx.blocked.items() if rule in ("DYN003", "DYN004")]:
            around = tree.around(node) if tree.has(node) else ()
            part = node if isinstance(node, cst.Slice) else next(iter(around[-1:]), None)
            target = next((n for n in reversed(around) if isinstance(n, cst.Subscript)), None)
            if isinstance(part, cst.Slice) and target is not None:
                if _is_bounded(ctx, node, part, target):
                    ctx.bounded.add(target)
                    del ctx.blocked[node]
    return ctx.bounded


def _is_bounded(ctx: Context, node: cst.CSTNode, part: cst.Slice, target: cst.Subscript) -> bool:
    """Whether a number is written there, within one slice of which something was said (``node``)."""
    if not _is_written(ctx, target) or part.step is not None:
        return False
    if not all(e.slice is part or _is_plain(ctx, e) for e in target.slice):
        return False
    return not isinstance(node, cst.Call) or _taken_out(ctx, node) is not node


def _is_written(ctx: Context, target: cst.Subscript) -> bool:
    """Whether a line writes one number there: ``mask[i, :n] = 1``, ``mask[i, :n].fill_(1)``."""
    above = list(reversed(ctx.source.index.around(target)))
    if isinstance(above[0], cst.AssignTarget):
        line = above[1]
        return (
            isinstance(line, cst.Assign)
            and len(line.targets) == 1
            and line.targets[0].target is target
            and _is_number(ctx, line.value)
        )
    attribute, call, line = above[:3]
    if not (isinstance(attribute, cst.Attribute) and isinstance(line, cst.Expr)):
        return False
    return isinstance(call, cst.Call) and call.func is attribute and fills(ctx, call)


def fills(ctx: Context, call: cst.Call) -> bool:
    """``x[i, n:].zero_()`` and ``fill_`` of a number."""
    name = ctx.facts.callee(call)
    if name == "Tensor.zero_":
        return not call.args
    return name == "Tensor.fill_" and len(call.args) == 1 and _is_number(ctx, call.args[0].value)


def _taken_out(ctx: Context, node: cst.BaseExpression) -> cst.BaseExpression:
    """The tensor of ``int(n)`` and ``n.item()``: a bound is asked for its whole number anyhow."""
    if not isinstance(node, cst.Call):
        return node
    if ctx.facts.callee(node) == "builtins.int" and len(node.args) == 1:
        return _taken_out(ctx, node.args[0].value)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "item" and not node.args:
        return _taken_out(ctx, node.func.value)
    return node


def _is_number(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether all places get one value."""
    kind = ctx.kind(value)
    return k.scalar_type(kind) is not None or (isinstance(kind, k.Tensor) and kind.rank == 0)


def _is_plain(ctx: Context, element: cst.SubscriptElement) -> bool:
    """Whether an index beside the bounds is a number, or a slice: no array of places, no mask."""
    part = element.slice
    if isinstance(part, cst.Slice):
        return part.step is None
    assert isinstance(part, cst.Index)
    kind = ctx.kind(part.value)
    if isinstance(part.value, cst.Ellipsis) or k.scalar_type(kind) == "int":
        return True
    return isinstance(kind, k.Tensor) and kind.rank == 0 and kind.dtype == "int"


def within_bounds(
    rw: Rewriter,
    target: cst.Subscript,
    value: cst.BaseExpression,
    original: cst.BaseExpression | None,
) -> cst.BaseExpression | None:
    """``set_within(mask, jnp.s_[i, :n], 1)``; None where the bounds are known.

    Args:
      original: what is written, in the source; None of zero_().
    """
    ctx = rw.ctx
    if target not in bounded(ctx) and not _may_be_bounded(ctx, target, original):
        return None
    slices = []
    for element in target.slice:
        part = element.slice
        if isinstance(part, cst.Slice):
            given = {
                name: rw.visit(_taken_out(ctx, one))
                for name in ("lower", "upper")
                if (one := getattr(part, name)) is not None
            }
            part = syntax.changed(part, **given)
        elif isinstance(part, cst.Index):
            part = syntax.changed(part, value=rw.visit(part.value))
        slices.append(syntax.changed(element, slice=part))
    ctx.helpers.use("jnp")
    name = ctx.helpers.need(module_file("rules.compat.indexing"), "set_within")
    index = cst.Subscript(syntax.parse("jnp.s_"), slices)
    args = [rw.visit(target.value), index, syntax.unparenthesized(value)]
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(one) for one in args])


def _may_be_bounded(
    ctx: Context, target: cst.Subscript, original: cst.BaseExpression | None
) -> bool:
    """``for i, n in enumerate(lengths): mask[i, :n] = 1`` of lengths that a forward pass is given."""
    if ctx.frame is None or (original is not None and not _is_number(ctx, original)):
        return False
    bounds = []
    for element in target.slice:
        if not _is_plain(ctx, element):
            return False
        if isinstance(element.slice, cst.Slice):
            bounds += [element.slice.lower, element.slice.upper]
    taken_out = [_taken_out(ctx, one) for one in bounds if one is not None]
    unknown = [one for one in taken_out if isinstance(ctx.kind(one), k.Unknown)]
    info = ctx.frame.info
    if not unknown or not forward_reaches(ctx, info):
        return False
    given = items(ctx.facts.tree, info)
    return any(
        not given.isdisjoint(syntax.names(one))
        and not (isinstance(one, cst.Name) and one.value in info.params)  # as a rule a number
        for one in unknown
    )
