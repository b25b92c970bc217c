"""Integers beside tensors in an index: torch takes what an integer names first, numpy counts it among the arrays.

``x[0, :, places]`` has the axes (rows, places) in torch, as ``x[0][:, places]``. For numpy, and JAX, the integer is an
index array like the other, and of index arrays with a slice in between the axis comes first: (places, rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.infer import kinds as k

_KEPT, _INTEGER, _ARRAY, _EITHER = "kept", "integer", "array", "either"


def is_told_by_a_run(ctx: Context, node: cst.Subscript) -> bool:
    """Whether the axes go by whether something is an integer, or has no axes, of which nothing is known."""
    if len(node.slice) < 3:
        return False
    sorts = [_sort(ctx, element.slice, reading=True) for element in node.slice]
    arrays = any(_sort(ctx, element.slice) == _ARRAY for element in node.slice)
    return _EITHER in sorts and arrays and any(map(_differs, _readings(sorts)))


def apart(
    ctx: Context, node: cst.Subscript, made: Sequence[cst.SubscriptElement]
) -> tuple[list[cst.SubscriptElement], list[cst.SubscriptElement]] | None:
    """The index by integers and the one by the rest, of what an index became; None where one does for both.

    Raises:
      Failure: it is not known whether something is an integer, and the axes of the result go by that.
    """
    if len(node.slice) < 3:
        return None
    sorts = [_sort(ctx, element.slice) for element in node.slice]
    if _ARRAY not in sorts or not ({_INTEGER, _EITHER} & set(sorts)):
        return None
    found = {_differs(one) for one in _readings(sorts)}
    if found == {False}:
        return None
    if len(found) > 1 or _EITHER in sorts:
        what = "it is not known whether an index is an integer, which torch takes before the tensors beside it"
        raise Failure(node, "API005", what, "say so with a type hint, or index by it first")
    first = [
        _whole(element) if sort == _ARRAY or isinstance(element.slice, cst.Slice) else element
        for sort, element in zip(sorts, made, strict=True)
        if not _is_none(element.slice)
    ]
    counted = not any(_is_ellipsis(element.slice) for element in first)  # from the front
    while counted and isinstance(first[-1].slice, cst.Slice):
        first.pop()
    second = [element for sort, element in zip(sorts, made, strict=True) if sort != _INTEGER]
    return _listed(first), _listed(second)


def _sort(ctx: Context, index: cst.BaseSlice, reading: bool = False) -> str:
    if not isinstance(index, cst.Index) or _is_ellipsis(index):
        return _KEPT
    kind = ctx.kind(index.value)
    if kind == k.NONE:
        return _KEPT
    if k.scalar_type(kind) == "int" or (isinstance(kind, k.Tensor) and kind.rank == 0):
        return _INTEGER
    if isinstance(kind, k.Tensor) and kind.rank is None and kind.dtype != "bool" and reading:
        return _EITHER
    if isinstance(kind, k.Tensor):
        return (
            _ARRAY if kind.dtype != "bool" else _KEPT
        )  # which is a finding, or converted as a whole
    return _ARRAY if isinstance(kind, (k.Sequence, k.Tuple)) else _EITHER


def _readings(sorts: list[str]) -> list[tuple[str, ...]]:
    choices = [(_INTEGER, _ARRAY) if one == _EITHER else (one,) for one in sorts]
    return list(product(*choices))


def _differs(sorts: Sequence[str]) -> bool:
    """Whether the axis of the index arrays comes elsewhere in numpy than in torch."""
    together = [i for i, one in enumerate(sorts) if one in (_INTEGER, _ARRAY)]
    if _INTEGER not in sorts or together == list(range(together[0], together[-1] + 1)):
        return False
    rest = [one for one in sorts if one != _INTEGER]
    arrays = [i for i, one in enumerate(rest) if one == _ARRAY]
    return bool(arrays) and arrays[0] > 0 and arrays == list(range(arrays[0], arrays[-1] + 1))


def _is_none(index: cst.BaseSlice) -> bool:
    value = index.value if isinstance(index, cst.Index) else None
    return isinstance(value, cst.Name) and value.value == "None"


def _is_ellipsis(index: cst.BaseSlice) -> bool:
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis)


def _whole(element: cst.SubscriptElement) -> cst.SubscriptElement:
    made: Any = syntax.changed(element, slice=cst.Slice(None, None))
    return made


def _listed(elements: Sequence[cst.SubscriptElement]) -> list[cst.SubscriptElement]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    before = [syntax.changed(one, comma=comma) for one in elements[:-1]]
    return [*before, syntax.changed(elements[-1], comma=cst.MaybeSentinel.DEFAULT)]
