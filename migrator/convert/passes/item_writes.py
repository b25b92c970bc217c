"""Writing items of tensors: ``.at[…]`` updates, and ``jnp.where`` for what a mask selects."""

from __future__ import annotations

import math
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.passes import targets
from migrator.convert.passes.bounded_writes import within_bounds
from migrator.convert.passes.indexing import check_bytes, convert_slices
from migrator.convert.passes.leading import may_lead
from migrator.convert.passes.pointers import from_pointer
from migrator.convert.passes.repeated_places import check_repeated, may_repeat
from migrator.convert.passes.selected_places import places
from migrator.convert.passes.shifts import shifted
from migrator.convert.rewriter import Rewriter
from migrator.convert.selected_first import apart
from migrator.convert.untracked import has_gradient
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._selected import index_of, selected_write

_UPDATES = {
    "AddAssign": "add",
    "SubtractAssign": "subtract",
    "MultiplyAssign": "multiply",
    "DivideAssign": "divide",
    "PowerAssign": "power",
}
_OPERATORS: dict[str, Any] = {
    "AddAssign": cst.Add,
    "SubtractAssign": cst.Subtract,
    "MultiplyAssign": cst.Multiply,
    "DivideAssign": cst.Divide,
    "PowerAssign": cst.Power,
    "FloorDivideAssign": cst.FloorDivide,
    "ModuloAssign": cst.Modulo,
    "BitAndAssign": cst.BitAnd,
    "BitOrAssign": cst.BitOr,
    "BitXorAssign": cst.BitXor,
}


def _mask(rw: Rewriter, target: cst.Subscript) -> cst.BaseExpression | None:
    """The mask of ``x[mask]``, when the index is one boolean tensor."""
    index = target.slice[0].slice
    if len(target.slice) != 1 or not isinstance(index, cst.Index):
        return None
    located = places(rw.ctx).masks.get(index.value)
    if located is not None:
        return located
    kind = rw.ctx.kind(index.value)
    return index.value if isinstance(kind, k.Tensor) and kind.dtype == "bool" else None


def set_items(
    rw: Rewriter,
    target: cst.Subscript,
    value: cst.BaseExpression,
    original: cst.BaseExpression | None = None,
) -> list[cst.BaseSmallStatement]:
    """``x[i] = value`` as ``x = x.at[i].set(value)``, ``x[mask] = v`` as ``x = jnp.where(mask, v, x)``."""
    check_repeated(rw.ctx, target, original)
    mask = _mask(rw, target)
    if mask is not None:
        return targets.assign(rw, target.value, _masked(rw, target, mask, value, original))
    selected = _perhaps_masked(rw, target, original) if original is not None else None
    if selected is not None:
        return targets.assign(rw, target.value, selected)
    part = _mask_among(rw, target)
    if part is not None and original is not None and _is_for_all(rw, target, original, part):
        made = _part_masked(rw, target, part, value)
        if made is not None:
            return targets.assign(rw, target.value, made)
        return targets.assign(rw, target.value, _at_run_time(rw, target, "set_at", value))
    moved: cst.BaseExpression | None = shifted(rw, target, value, original)
    moved = moved or from_pointer(rw, target, value)
    if moved is None and original is not None:
        moved = within_bounds(rw, target, value, original)
    if moved is not None:
        return targets.assign(rw, target.value, moved)
    slices = convert_slices(rw, target, writing=True)
    value = _of_dtype(rw, target, _of_rank(rw, target, value, original), original)
    parts = apart(rw.ctx, target, slices)
    if parts is not None:
        slices, inside = parts
        value = _with(cst.Subscript(rw.visit(target.value), slices), inside, "set", value)
    made = cst.ensure_type(_at(rw, target, slices, "set", value), cst.Call)
    if target in places(rw.ctx).writes:
        made = syntax.add_keyword(made, "mode", cst.SimpleString('"drop"'))
    elif _is_tensor(rw, original) and may_repeat(rw.ctx, target) and has_gradient(rw.ctx, value):
        made = cst.ensure_type(_each(rw, made), cst.Call)
    return targets.assign(rw, target.value, made)


def _is_tensor(rw: Rewriter, value: cst.BaseExpression | None) -> bool:
    return value is None or k.scalar_type(rw.ctx.kind(value)) is None


def _of_rank(
    rw: Rewriter,
    target: cst.Subscript,
    value: cst.BaseExpression,
    original: cst.BaseExpression | None,
) -> cst.BaseExpression:
    """``out[i] = y[None]``: torch leaves out leading axes of one element that the place does not have, JAX refuses them."""
    given = rw.ctx.kind(original) if original is not None else k.UNKNOWN
    whole = rw.ctx.kind(target.value)
    if original is None and isinstance(value, cst.Name):
        original, given = value, k.TENSOR  # the last of ``out[t] = last = …``
    if not isinstance(given, k.Tensor) or not isinstance(whole, k.Tensor):
        return value
    if given.rank is None or whole.rank is None:
        if original is None or not may_lead(rw.ctx, original, target):
            return value
        helper = rw.ctx.helpers.need(module_file("rules.compat.written"), "fitting")
        read = syntax.changed(
            target,
            value=syntax.fitted(target, "value", rw.visit(target.value)),
            slice=convert_slices(rw, target),
        )
        args = [cst.Arg(syntax.unparenthesized(value)), cst.Arg(read)]
        return syntax.with_args(cst.Call(cst.Name(helper)), args)
    place = whole.rank
    for element in target.slice:
        part = element.slice
        if not isinstance(part, cst.Index) or isinstance(part.value, cst.Ellipsis):
            continue
        if k.scalar_type(rw.ctx.kind(part.value)) != "int":
            return value
        place -= 1
    extra = given.rank - place
    if extra <= 0:
        return value
    index = ", ".join(["0"] * extra)
    return syntax.substitute(syntax.parse(f"__value__[{index}]"), {"__value__": value})


_DTYPES = ("bool", "int", "float", "complex")


def _of_dtype(
    rw: Rewriter,
    target: cst.Subscript,
    value: cst.BaseExpression,
    original: cst.BaseExpression | None,
) -> cst.BaseExpression:
    """``mask[0] = 1`` → ``True``: torch casts what it writes; JAX warns of it where the dtype is a smaller one."""
    whole = rw.ctx.kind(target.value)
    given = rw.ctx.kind(original) if original is not None else k.UNKNOWN
    held = given.dtype if isinstance(given, k.Tensor) else k.scalar_type(given)
    into = whole.dtype if isinstance(whole, k.Tensor) else None
    if into not in ("bool", "int"):
        return value
    unknown = into == "bool" and isinstance(given, k.Tensor) and held is None
    if not unknown and (held not in _DTYPES or _DTYPES.index(held) <= _DTYPES.index(into)):
        return value
    if isinstance(given, k.Const) and isinstance(given.value, (int, float)):
        if math.isfinite(given.value):
            return syntax.parse(repr(bool(given.value) if into == "bool" else int(given.value)))
    if not isinstance(given, k.Tensor):
        return value
    dtype = "bool" if into == "bool" else f"{syntax.code(rw.visit(target.value))}.dtype"
    return syntax.substitute(
        syntax.parse(f"v.astype({dtype})"), {"v": syntax.fitted(_ATTRIBUTE, "value", value)}
    )


def _mask_among(rw: Rewriter, target: cst.Subscript) -> cst.SubscriptElement | None:
    """The one index of ``x[m]``, ``x[m, 0]``, ``x[:, m]`` that is or may be a mask, where all others are basic."""
    found = None
    for element in target.slice:
        part = element.slice
        if isinstance(part, cst.Slice):
            if not all(_is_basic(rw, one) for one in (part.lower, part.upper, part.step)):
                return None
            continue
        assert isinstance(part, cst.Index)
        kind = rw.ctx.kind(part.value)
        mask = isinstance(kind, k.Tensor) and kind.dtype in ("bool", None) and kind.rank != 0
        mask = mask or (isinstance(kind, k.Unknown) and _may_be_mask(part.value))
        if mask and found is None:
            found = element
        elif isinstance(part.value, cst.Ellipsis) and found is None:
            continue
        elif not _is_basic(rw, part.value):
            return None
    return found


_OF_MASKS = (cst.BitAnd, cst.BitOr, cst.BitXor, cst.Multiply)
"""Operators that give a mask of masks."""


def _may_be_mask(index: cst.BaseExpression) -> bool:
    return not isinstance(index, cst.BinaryOperation) or isinstance(index.operator, _OF_MASKS)


def _is_basic(rw: Rewriter, bound: cst.BaseExpression | None) -> bool:
    """Whether a bound or an index is a whole number that may be asked for twice."""
    if bound is None:
        return True
    calls = any(isinstance(n, (cst.Call, cst.NamedExpr)) for n in syntax.walk(bound))
    return k.scalar_type(rw.ctx.kind(bound)) == "int" and not calls


def _is_for_all(
    rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression, part: cst.SubscriptElement
) -> bool:
    """Whether all places that a mask selects get one value: a number, a row of the module's own."""
    given, whole = rw.ctx.kind(value), rw.ctx.kind(target.value)
    if k.scalar_type(given) is not None or (isinstance(given, k.Tensor) and given.rank == 0):
        return True
    if any(e is not part and isinstance(e.slice, cst.Index) for e in target.slice):
        return False
    alone = len(target.slice) == 1
    if alone and isinstance(given, k.Tensor) and isinstance(whole, k.Tensor):
        if given.rank is not None and whole.rank is not None and given.rank < whole.rank:
            return True
    assert isinstance(part.slice, cst.Index)
    mask = syntax.changed(target, slice=[cst.SubscriptElement(part.slice)])
    found = selected_write(
        cst.Assign([cst.AssignTarget(mask)], value),
        rw.ctx.facts.callee,
        lambda one: k.scalar_type(rw.ctx.kind(one)) is not None,
        lambda one: None if one is mask.value else getattr(rw.ctx.kind(one), "rank", None),
    )
    return found is not None and not found.selections


def _part_masked(
    rw: Rewriter,
    target: cst.Subscript,
    element: cst.SubscriptElement,
    value: cst.BaseExpression,
    operator: str | None = None,
) -> cst.BaseExpression | None:
    """``x.at[:, :, 0].set(jnp.where(mask, v, x[:, :, 0]))`` for ``x[mask, 0] = v``; None where ranks are not known."""
    ctx, place = rw.ctx, list(target.slice).index(element)
    assert isinstance(element.slice, cst.Index)
    mask, base = ctx.kind(element.slice.value), ctx.kind(target.value)
    if not isinstance(mask, k.Tensor) or mask.dtype != "bool" or operator == "PowerAssign":
        return None
    before, after = target.slice[:place], target.slice[place + 1 :]
    behind = sum(isinstance(e.slice, cst.Slice) for e in after)
    if not any(isinstance(getattr(e.slice, "value", None), cst.Ellipsis) for e in before):
        rank = base.rank if isinstance(base, k.Tensor) else None
        if rank is None or mask.rank is None:
            return None
        behind += rank - len(before) - mask.rank - len(after)
    if mask.rank is None or behind < 0:
        return None
    whole = [cst.SubscriptElement(cst.Slice(None, None)) for _ in range(mask.rank)]
    read = syntax.changed(target, slice=separated([*before, *whole, *after]))
    elements = convert_slices(rw, read)
    part = cst.Subscript(syntax.fitted(read, "value", rw.visit(target.value)), elements)
    made = rw.visit(element.slice.value)
    if behind:
        made = syntax.substitute(syntax.parse(f"m[...{', None' * behind}]"), {"m": made})
    new = value if operator is None else binary(part, operator, value)
    args = [cst.Arg(syntax.unparenthesized(one)) for one in (made, new, part)]
    ctx.helpers.use("jnp")
    where = syntax.with_args(cst.Call(syntax.parse("jnp.where")), args)
    return _at(rw, target, elements, "set", where)


def _at_run_time(
    rw: Rewriter, target: cst.Subscript, helper: str, value: cst.BaseExpression
) -> cst.BaseExpression:
    """``set_at(x, jnp.s_[:, m], v)``, which looks whether m is a mask and how many axes it has."""
    items = []
    for element in target.slice:
        if isinstance(element.slice, cst.Index):
            index = element.slice
            check_bytes(rw, index.value, rw.ctx.kind(index.value))
            made = syntax.changed(index, value=rw.visit(index.value))
            items.append(syntax.changed(element, slice=made))
        else:
            items.append(syntax.changed(element, slice=rw.rebuild(element.slice)))
    first = items[0].slice
    if len(items) == 1 and isinstance(first, cst.Index):
        index_made: cst.BaseExpression = first.value
    else:
        rw.ctx.helpers.use("jnp")
        index_made = cst.Subscript(syntax.parse("jnp.s_"), items)
    name = rw.ctx.helpers.need(module_file("rules.compat.masks"), helper)
    parts = (rw.visit(target.value), index_made, value)
    args = [cst.Arg(syntax.unparenthesized(one)) for one in parts]
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def separated(elements: list[cst.SubscriptElement]) -> list[cst.SubscriptElement]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = len(elements) - 1
    return [
        syntax.changed(e, comma=comma if i < last else cst.MaybeSentinel.DEFAULT)
        for i, e in enumerate(elements)
    ]


def _at(
    rw: Rewriter,
    target: cst.Subscript,
    slices: list[cst.SubscriptElement],
    method: str,
    value: cst.BaseExpression,
) -> cst.BaseExpression:
    return _with(rw.visit(target.value), slices, method, value)


def _with(
    base: cst.BaseExpression,
    slices: list[cst.SubscriptElement],
    method: str,
    value: cst.BaseExpression,
) -> cst.BaseExpression:
    """``base.at[slices].set(value)``."""
    at = cst.Attribute(syntax.fitted(_ATTRIBUTE, "value", base), cst.Name("at"))
    item = cst.Subscript(at, slices)
    if isinstance(value, cst.Tuple) and not value.lpar:
        value = syntax.parenthesized(value)  # type: ignore[assignment]
    return cst.Call(cst.Attribute(item, cst.Name(method)), [cst.Arg(value)])


_ATTRIBUTE = cst.Attribute(cst.Name("x"), cst.Name("at"))


def _masked(
    rw: Rewriter,
    target: cst.Subscript,
    mask: cst.BaseExpression,
    value: cst.BaseExpression,
    original: cst.BaseExpression | None,
) -> cst.BaseExpression:
    ctx = rw.ctx
    kind = ctx.kind(original) if original is not None else k.UNKNOWN
    scalar = k.scalar_type(kind) is not None or (isinstance(kind, k.Tensor) and kind.rank == 0)
    selected = _same_selection(rw, original, mask) if original is not None else None
    if not scalar and selected is None:
        raise Failure(
            target,
            "DYN001",
            "values assigned through a boolean mask are placed by data",
            "use jnp.where(mask, values, x) with values of x's shape",
        )
    base = rw.visit(target.value)
    made_mask = rw.visit(mask)
    fill = value if scalar else selected
    assert isinstance(fill, cst.BaseExpression)
    if same_rank(rw, target.value, mask):
        ctx.helpers.use("jnp")
        function = syntax.parse("jnp.where")
        return syntax.with_args(
            cst.Call(function), [cst.Arg(made_mask), cst.Arg(fill), cst.Arg(base)]
        )
    name = ctx.helpers.need(module_file("rules.compat.masks"), "where_leading")
    return syntax.with_args(
        cst.Call(cst.Name(name)), [cst.Arg(made_mask), cst.Arg(fill), cst.Arg(base)]
    )


def _perhaps_masked(
    rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression
) -> cst.BaseExpression | None:
    """``set_selected(x, m, y)`` for ``x[m] = y[m]`` of an ``m`` that is a mask or whole numbers: its dtype tells."""
    index = index_of(target)
    kind = rw.ctx.kind(index) if index is not None else None
    called = isinstance(index, cst.Name) and "mask" in index.value.lower()
    if not (isinstance(kind, k.Tensor) and kind.dtype is None and kind.rank != 0):
        if not isinstance(kind, k.Unknown) or not called:
            return None
    assert index is not None
    taken = _same_selection(rw, value, index)
    if taken is None or any(isinstance(n, (cst.Call, cst.NamedExpr)) for n in syntax.walk(index)):
        return None
    helper = rw.ctx.helpers.need(module_file("rules.compat.masks"), "set_selected")
    parts = (rw.visit(target.value), rw.visit(index), taken)
    args = [cst.Arg(syntax.unparenthesized(one)) for one in parts]
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


def selects_the_same(rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression) -> bool:
    """Whether ``x[mask] = value`` takes its values by the very mask it writes through."""
    mask = _mask(rw, target)
    if mask is None or not isinstance(value, cst.Subscript) or len(value.slice) != 1:
        return False
    index = value.slice[0].slice
    return isinstance(index, cst.Index) and bool(index.value.deep_equals(mask))


def _same_selection(
    rw: Rewriter, value: cst.BaseExpression, mask: cst.BaseExpression
) -> cst.BaseExpression | None:
    """y for a value written ``y[mask]`` with the very same mask: where the mask holds, x takes y."""
    if not isinstance(value, cst.Subscript) or len(value.slice) != 1:
        return None
    index = value.slice[0].slice
    if not isinstance(index, cst.Index) or not index.value.deep_equals(mask):
        return None
    made: cst.BaseExpression = rw.visit(value.value)
    return made


def same_rank(rw: Rewriter, base: cst.BaseExpression, mask: cst.BaseExpression) -> bool:
    """Whether a mask surely has all axes of what it is an index of."""
    a, b = rw.ctx.kind(base), rw.ctx.kind(mask)
    if isinstance(a, k.Tensor) and isinstance(b, k.Tensor):
        if a.rank is not None and a.rank == b.rank:
            return True
    # a mask computed from x by comparison has at least x's rank, and an index may not have more
    if isinstance(mask, cst.Comparison):
        sides = [mask.left, *[c.comparator for c in mask.comparisons]]
        return any(side.deep_equals(base) for side in sides)
    return False


def update_items(rw: Rewriter, target: cst.Subscript, node: cst.AugAssign) -> Any:
    """``x[i] += v``; with an index tensor torch counts duplicates once, ``.at[].add`` each time."""
    check_repeated(rw.ctx, target, target)
    operator = type(node.operator).__name__
    value = rw.visit(node.value)
    mask = _mask(rw, target)
    if mask is not None:
        kind = rw.ctx.kind(node.value)
        if k.scalar_type(kind) is None or operator not in _OPERATORS:
            raise Failure(
                target,
                "DYN001",
                "a masked update by a tensor is placed by data",
                "use jnp.where(mask, x + values, x) with values of x's shape",
            )
        base = rw.visit(target.value)
        combined = binary(base, operator, value)
        return targets.assign(rw, target.value, _where(rw, target, mask, combined, base))
    part = _mask_among(rw, target)
    if part and operator in _OPERATORS and _is_for_all(rw, target, node.value, part):
        made = _part_masked(rw, target, part, value, operator)
        if made is None:
            one = cst.Name("part")
            updated = cst.Lambda(cst.Parameters([cst.Param(one)]), binary(one, operator, value))
            made = _at_run_time(rw, target, "update_at", updated)
        return targets.assign(rw, target.value, made)
    slices = convert_slices(rw, target, writing=True)
    if apart(rw.ctx, target, slices) is not None:
        what = "an integer stands beside a tensor in the index of an augmented assignment"
        raise Failure(target, "MUT002", what, "write `x[i, :, idx] = x[i, :, idx] + v`")
    basic = all(
        not isinstance(e.slice, cst.Index)
        or not isinstance(rw.ctx.kind(e.slice.value), (k.Tensor, k.Sequence, k.Unknown))
        for e in target.slice
    )
    if basic and operator in _UPDATES:
        made = _at(rw, target, slices, _UPDATES[operator], value)
    elif operator in _OPERATORS:
        read = syntax.changed(target, value=rw.visit(target.value), slice=slices)
        made = _at(rw, target, slices, "set", binary(read, operator, value))
        if may_repeat(rw.ctx, target):
            made = _each(rw, made)
    else:
        raise Failure(
            node, "MUT002", "this augmented assignment has no counterpart", "write it out"
        )
    return targets.assign(rw, target.value, made)


def _each(rw: Rewriter, made: cst.BaseExpression) -> cst.BaseExpression:
    """``set_each(x.at[i], value)``"""
    match made:
        case cst.Call(cst.Attribute(place, cst.Name("set")), [cst.Arg(value)]):
            helper = rw.ctx.helpers.need(module_file("rules.compat.written"), "set_each")
            return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(place), cst.Arg(value)])
    return made


def binary(
    left: cst.BaseExpression, operator: str, right: cst.BaseExpression
) -> cst.BinaryOperation:
    """The operation of an augmented assignment."""
    made = cst.BinaryOperation(cst.Name("a"), _OPERATORS[operator](), cst.Name("b"))
    return syntax.changed(
        made, left=syntax.fitted(made, "left", left), right=syntax.fitted(made, "right", right)
    )


def _where(
    rw: Rewriter,
    target: cst.Subscript,
    mask: cst.BaseExpression,
    new: cst.BaseExpression,
    base: cst.BaseExpression,
) -> cst.BaseExpression:
    if same_rank(rw, target.value, mask):
        rw.ctx.helpers.use("jnp")
        function: cst.BaseExpression = syntax.parse("jnp.where")
    else:
        function = cst.Name(rw.ctx.helpers.need(module_file("rules.compat.masks"), "where_leading"))
    args = [cst.Arg(rw.visit(mask)), cst.Arg(new), cst.Arg(base)]
    return syntax.with_args(cst.Call(function), args)
