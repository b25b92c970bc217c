"""``torch.tensor(loss)``, ``torch.tensor([a, b])``: numbers that are read out of tensors have no gradient.

torch warns of the first and says nothing of the second; what is made has the values, and no history.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import levels
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_COPYING = frozenset(["torch.tensor", "Tensor.new_tensor"])
"""Functions that take the values of a tensor, too, and not the tensor."""
_AS_IS = frozenset(["torch.as_tensor", "torch.asarray"])
_OF_LISTS = _AS_IS | {"torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor"}
"""Functions that give a tensor itself, with its gradient, but read the numbers of a list."""


@converts(cst.Call, called=_COPYING | _OF_LISTS)
def without_history(rw: Rewriter, node: cst.Call) -> Any:
    """The array that is made, behind ``lax.stop_gradient`` where tensors may be in what it is made of."""
    ctx = rw.ctx
    name = ctx.facts.callee(node)
    if (
        name not in _COPYING | _OF_LISTS
        or ("copies", node) in ctx.asking
        or not ctx.source.index.has(node)
    ):
        return None
    data = _data(node)
    if ctx.frame is None or ctx.frame.info.short == "__init__" or data is None:
        return None  # nothing is differentiated where a file is imported, or a module built
    unknown = name in _AS_IS and isinstance(ctx.kind(data), k.Unknown)
    if not _has_gradient(ctx, node, data) and not unknown:
        return None
    made = rw.visit_for(("copies", node))
    if unknown:
        return _told_later(rw, made)
    ctx.helpers.use("lax")
    return cst.Call(syntax.parse("lax.stop_gradient"), [cst.Arg(made)])


def _told_later(rw: Rewriter, made: cst.BaseExpression) -> cst.BaseExpression:
    """``as_tensor(x)`` for ``jnp.asarray(x)``: whether x is an array or a list shows when it is called."""
    if not isinstance(made, cst.Call) or syntax.code(made.func) != "jnp.asarray":
        return made
    helper = rw.ctx.helpers.need(module_file("rules.compat.data"), "as_tensor")
    return syntax.changed(made, func=cst.Name(helper))


def _data(node: cst.Call) -> cst.BaseExpression | None:
    """What the array is made of."""
    for arg in node.args:
        if arg.star:
            return None
        if arg.keyword is None or arg.keyword.value in ("data", "obj"):
            return arg.value
    return None


def _has_gradient(ctx: Context, node: cst.Call, data: cst.BaseExpression) -> bool:
    """Whether a gradient may flow into what is made."""
    made, kind = ctx.kind(node), ctx.kind(data)
    if isinstance(made, k.Tensor) and made.dtype in ("int", "bool"):
        return False
    if _becomes_integers(ctx, node) or (isinstance(data, cst.List) and not data.elements):
        return False
    if isinstance(data, cst.Call) and ctx.facts.callee(data) == "Tensor.detach":
        return False
    if ctx.facts.callee(node) in _OF_LISTS and not isinstance(kind, (k.Sequence, k.Tuple)):
        return False
    return any(
        part.dtype not in ("int", "bool")
        if isinstance(part, k.Tensor)
        else isinstance(part, k.Unknown)
        for part in levels(kind)
    )


def _becomes_integers(ctx: Context, node: cst.Call) -> bool:
    """``torch.tensor(indices).long()``."""
    above = ctx.source.index.around(node)[-2:]
    return (
        len(above) == 2
        and isinstance(above[1], cst.Attribute)
        and isinstance(above[0], cst.Call)
        and above[0].func is above[1]
        and above[1].attr.value in ("long", "int", "bool")
    )
