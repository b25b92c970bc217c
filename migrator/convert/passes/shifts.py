"""``x[..., 1:] = x[..., :-1].clone()``: a tensor moved along an axis within itself.

``jnp.concatenate`` says so without writing over what is still to be read: XLA for CPUs (jaxlib 0.10) computes
``y.at[1:].set(y[:-1])`` in place, from the values that it has just written, where y comes out of a cumulative sum.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k

_COPIES = frozenset({"Tensor.clone"})


def shifted(
    rw: Rewriter,
    target: cst.Subscript,
    value: cst.BaseExpression,
    original: cst.BaseExpression | None,
) -> cst.Call | None:
    """What a tensor becomes by a write of one part of it to the part beside it; None for any other write."""
    given = _copied(rw.ctx, original)
    if not isinstance(given, cst.Subscript) or not given.value.deep_equals(target.value):
        return None
    if not isinstance(rw.ctx.kind(target.value), k.Tensor) or len(given.slice) != len(target.slice):
        return None
    both = list(zip(target.slice, given.slice, strict=True))
    places = [i for i, (into, out) in enumerate(both) if not _are_whole(into, out)]
    if len(places) != 1:
        return None
    (place,) = places
    kept = _kept(*both[place])
    if kept is None:
        return None
    part, first = kept
    slices = [
        syntax.changed(e, slice=part) if i == place else e for i, e in enumerate(target.slice)
    ]
    rest = syntax.changed(target, value=rw.visit(target.value), slice=slices)
    made = [cst.Element(one) for one in ((rest, value) if first else (value, rest))]
    rw.ctx.helpers.use("jnp")
    call = cst.Call(syntax.parse("jnp.concatenate"), [cst.Arg(cst.List(made))])
    behind_all = any(_is_ellipsis(e) for e in target.slice[:place])
    axis = place - len(target.slice) if behind_all else place
    return syntax.add_keyword(call, "axis", syntax.parse(str(axis))) if axis else call


def _copied(ctx: Context, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """``x`` of ``x.clone()``."""
    while isinstance(node, cst.Call) and ctx.facts.callee(node) in _COPIES and not node.args:
        node = node.func.value if isinstance(node.func, cst.Attribute) else None
    return node


def _is_ellipsis(element: cst.SubscriptElement) -> bool:
    return isinstance(element.slice, cst.Index) and isinstance(element.slice.value, cst.Ellipsis)


def _are_whole(into: cst.SubscriptElement, out: cst.SubscriptElement) -> bool:
    """Whether both are ``:``, or both are ``...``."""
    whole = [
        _is_ellipsis(one)
        or (
            isinstance(one.slice, cst.Slice)
            and not (one.slice.lower or one.slice.upper or one.slice.step)
        )
        for one in (into, out)
    ]
    return all(whole) and _is_ellipsis(into) == _is_ellipsis(out)


def _kept(into: cst.SubscriptElement, out: cst.SubscriptElement) -> tuple[cst.Slice, bool] | None:
    """What stays as it is, and whether it comes first: ``:1`` of ``x[1:] = x[:-1]``, ``-1:`` of ``x[:-1] = x[1:]``."""
    a, b = into.slice, out.slice
    if not isinstance(a, cst.Slice) or not isinstance(b, cst.Slice) or a.step or b.step:
        return None
    if a.lower and b.upper and not a.upper and not b.lower and _are_opposite(a.lower, b.upper):
        return cst.Slice(None, a.lower), True
    if a.upper and b.lower and not a.lower and not b.upper and _are_opposite(b.lower, a.upper):
        return cst.Slice(a.upper, None), False
    return None


def _are_opposite(number: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """``1`` and ``-1``."""
    if not isinstance(number, cst.Integer) or not isinstance(other, cst.UnaryOperation):
        return False
    minus = isinstance(other.operator, cst.Minus) and isinstance(other.expression, cst.Integer)
    return minus and number.deep_equals(other.expression) and number.evaluated_value > 0
