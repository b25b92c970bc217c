"""Where a call takes numbers: sizes, bounds and places."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst


def bounds(call: cst.Call, maker: str) -> list[cst.Arg]:
    """The bounds of ``torch.arange`` and the number of steps of ``torch.linspace``."""
    places, names = _BOUNDS.get(maker, ((), ()))
    return [
        item
        for place, item in enumerate(call.args)
        if (item.keyword is None and place in places and not item.star)
        or (item.keyword is not None and item.keyword.value in names)
    ]


def place_of_called(func: cst.BaseExpression) -> cst.BaseExpression | None:
    """``i`` of ``self.layers[i](x)``: a place in a list of layers, or a name."""
    if not isinstance(func, cst.Subscript) or not isinstance(func.value, cst.Attribute):
        return None
    index = func.slice[0].slice if len(func.slice) == 1 else None
    return index.value if isinstance(index, cst.Index) else None


def sizes(call: cst.Call) -> list[cst.Arg]:
    """``n`` of ``x.view(-1, n)``; ``torch.reshape``, ``einops.repeat`` and methods of one's own may take a tensor first."""
    of = call.func.value if isinstance(call.func, cst.Attribute) else None
    if isinstance(of, cst.Name) and of.value in _LIBRARIES:
        return []
    given = [item.value for item in call.args if not item.star and item.keyword is None]
    numbered = any(type(_positive(one)) is cst.Integer for one in given)
    texts = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)
    if len(given) < len(call.args) or not numbered or any(isinstance(a, texts) for a in given):
        return []
    return list(call.args)


def _positive(node: cst.BaseExpression) -> cst.BaseExpression:
    """``1`` of ``-1``."""
    return node.expression if type(node) is cst.UnaryOperation else node


SHAPING = frozenset("view reshape repeat expand".split())
_LIBRARIES = frozenset("self torch th np numpy einops jnp".split())


def counts(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """``step`` and ``n`` of ``step + n``: what a number of steps is reckoned from."""
    if isinstance(node, cst.BinaryOperation) and isinstance(
        node.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide)
    ):
        yield from counts(node.left)
        yield from counts(node.right)
    else:
        yield node


_BOUNDS = {"arange": ((0, 1), ("start", "end")), "linspace": ((2,), ("steps",))}
