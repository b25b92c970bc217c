"""``torch.tensor(loss)``, ``torch.tensor([a, b])``: numbers that are read out of tensors have no gradient.

torch warns of the first and says nothing of the second; what is made has the values, and no history.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_COPYING = frozenset(["torch.tensor", "Tensor.new_tensor"])
"""Functions that take the values of a tensor, too, and not the tensor."""
_OF_LISTS = frozenset(
    ["torch.as_tensor", "torch.asarray", "torch.Tensor", "torch.FloatTensor", "torch.DoubleTensor"]
)
"""Functions that give a tensor itself, with its gradient, but read the numbers of a list."""


@converts(cst.Call, called=_COPYING | _OF_LISTS)
def without_history(rw: Rewriter, node: cst.Call) -> Any:
    """The array that is made, behind ``lax.stop_gradient`` where tensors may be in what it is made of."""
    ctx = rw.ctx
    if ctx.facts.callee(node) not in _COPYING | _OF_LISTS:
        return None
    if node in ctx.copied or not ctx.source.index.has(node) or not _runs_later(ctx):
        return None
    data = _data(node)
    if data is None or not _has_gradient(ctx, node, data):
        return None
    ctx.copied.add(node)
    made = rw.visit(node)
    ctx.helpers.use("lax")
    return cst.Call(syntax.parse("lax.stop_gradient"), [cst.Arg(made)])


def _runs_later(ctx: Context) -> bool:
    """Whether code may run while something is differentiated: not where a module is built, or a file imported."""
    frame = ctx.frame
    return frame is not None and not ctx.in_init and not frame.info.builds


def _data(node: cst.Call) -> cst.BaseExpression | None:
    """What the array is made of."""
    for arg in node.args:
        if arg.star:
            return None
        if arg.keyword is None or arg.keyword.value == "data":
            return arg.value
    return None


def _has_gradient(ctx: Context, node: cst.Call, data: cst.BaseExpression) -> bool:
    """Whether a gradient may flow into what is made."""
    made, kind = ctx.kind(node), ctx.kind(data)
    if isinstance(made, k.Tensor) and made.dtype in ("int", "bool"):
        return False
    if _becomes_integers(ctx, node) or (isinstance(data, cst.List) and not data.elements):
        return False
    if isinstance(data, cst.Call) and isinstance(data.func, cst.Attribute):
        if data.func.attr.value == "detach":
            return False
    if ctx.facts.callee(node) in _OF_LISTS and not isinstance(kind, (k.Sequence, k.Tuple)):
        return False
    return _holds_tensor(kind)


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


def _holds_tensor(kind: k.Kind) -> bool:
    """Whether a value is, or holds, a tensor of floats, or may for all that is known."""
    if isinstance(kind, k.Optional):
        return _holds_tensor(kind.inner)
    if isinstance(kind, k.Tuple):
        return any(map(_holds_tensor, kind.items))
    if isinstance(kind, k.Sequence):
        return _holds_tensor(kind.item)
    if isinstance(kind, k.Tensor):
        return kind.dtype not in ("int", "bool")
    return isinstance(kind, k.Unknown)
