"""Slices of one tensor that share no element: ``x[..., :n]`` and ``x[..., n:]``, ``x[::2]`` and ``x[1::2]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

Sum = dict[str, int]
"""A bound as a sum of sizes: how often each piece of code is counted, and under the empty name the number."""
END = None
"""The bound of a slice that goes to the end."""


@dataclass(frozen=True)
class Range:
    """The places that an index takes along an axis, from ``start`` up to ``stop``, ``step`` apart.

    A start that is not known is the first place, of step 1; an end that is not, the last."""

    start: Sum
    stop: Sum | None
    step: int = 1

    def apart(self, other: Range) -> bool:
        """Whether no place is in both."""
        if self.stop is not END and _reaches(self.stop, other.start):
            return True
        if other.stop is not END and _reaches(other.stop, self.start):
            return True
        if self.step != other.step or self.step < 2 or {*self.start, *other.start} - {""}:
            return False
        first, second = self.start.get("", 0), other.start.get("", 0)
        return min(first, second) >= 0 and (first - second) % self.step != 0


def _reaches(stop: Sum, start: Sum) -> bool:
    """Whether a range that stops here ends before one that starts there.

    A bound that is the same code is the same place, from whichever end it counts. Others are compared as sums of
    sizes, none of which is below zero: ``n`` comes before ``2 * n`` and ``n + m``.
    """
    if stop == start:
        return True
    names = {*stop, *start} - {""}
    ends = (stop.get("", 0), start.get("", 0))
    if any(start.get(name, 0) < stop.get(name, 0) or stop.get(name, 0) < 0 for name in names):
        return False
    same_side = min(ends) >= 0 or (max(ends) < 0 and not names)
    return same_side and ends[0] <= ends[1]


def apart(ctx: Context, slices: Sequence[cst.Subscript]) -> bool:
    """Whether no two of several indexings of one tensor share an element."""
    found = [_axes(ctx, one) for one in slices]
    return len(found) > 1 and all(
        any(mine.apart(other[axis]) for axis, mine in one.items() if axis in other)
        for one, other in combinations(found, 2)
    )


def _axes(ctx: Context, node: cst.Subscript) -> dict[int, Range]:
    """The range that an indexing takes along each axis it says something of; after an ellipsis from the back."""
    elements: list[cst.BaseSlice] = [element.slice for element in node.slice]
    found = dict(enumerate(_ranges(ctx, elements)))
    if any(isinstance(e, cst.Index) and isinstance(e.value, cst.Ellipsis) for e in elements):
        found |= {-1 - place: one for place, one in enumerate(_ranges(ctx, elements[::-1]))}
    return found


def _ranges(ctx: Context, elements: Sequence[cst.BaseSlice]) -> list[Range]:
    """The ranges of the first axes, as far as each is indexed by a slice or an integer."""
    found = []
    for element in elements:
        one = _range(ctx, element)
        if one is None:
            break
        found.append(one)
    return found


def _range(ctx: Context, element: cst.BaseSlice) -> Range | None:
    if isinstance(element, cst.Index):
        place = _sum(ctx, element.value)
        if place is None:
            return None
        after = {**place, "": place.get("", 0) + 1}
        return Range(place, END if place == _of(-1) else {n: c for n, c in after.items() if c})
    assert isinstance(element, cst.Slice)
    step = 1 if element.step is None else _number(ctx, element.step)
    if step is None or step < 1:
        return Range({}, END)
    start = {} if element.lower is None else _sum(ctx, element.lower)
    stop = END if element.upper is None else _sum(ctx, element.upper)
    return Range({}, stop) if start is None else Range(start, stop, step)


def _of(number: int) -> Sum:
    return {"": number} if number else {}


def _number(ctx: Context, node: cst.BaseExpression) -> int | None:
    kind = ctx.kind(node)
    if isinstance(kind, k.Const) and type(kind.value) is int:
        return kind.value
    return None


def _sum(ctx: Context, node: cst.BaseExpression) -> Sum | None:
    """A bound as a sum of sizes; None where it may be something else, or another thing each time it is asked."""
    number = _number(ctx, node)
    if number is not None:
        return _of(number)
    if isinstance(node, cst.BinaryOperation):
        left, right = _sum(ctx, node.left), _sum(ctx, node.right)
        if left is None or right is None:
            return None
        if isinstance(node.operator, cst.Add):
            both = {name: left.get(name, 0) + right.get(name, 0) for name in (*left, *right)}
            return {name: count for name, count in both.items() if count}
        if isinstance(node.operator, cst.Multiply):
            for times, one in ((left, right), (right, left)):
                if not {*times} - {""}:
                    scale = times.get("", 0)
                    return {name: count * scale for name, count in one.items() if scale}
    calls = ctx.facts.tree.within(node, cst.Call)
    if any(ctx.facts.callee(call) not in _SIZES for call in calls):
        return None
    return {syntax.code(node): 1} if k.scalar_type(ctx.kind(node)) == "int" else None


_SIZES = frozenset({"Tensor.size", "Tensor.dim", "builtins.len", "builtins.int"})
