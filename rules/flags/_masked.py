"""Losses of what a mask selects: ``F.mse_loss(x[mask], y[mask])`` has a static shape, whatever the mask holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import libcst as cst

from rules.below import children

LOSSES = frozenset(
    f"torch.nn.functional.{name}"
    for name in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split()
)
"""Losses that look at each element by itself, and have a finite slope where both are 0."""


class MaskedLoss(NamedTuple):
    """The parts of such a call."""

    name: str
    input: cst.BaseExpression
    target: cst.BaseExpression
    mask: cst.BaseExpression
    reduction: str


def masked_loss(
    call: cst.CSTNode,
    callee: Callable[[cst.Call], str | None],
    is_tensor: Callable[[cst.BaseExpression], bool],
    dtype: Callable[[cst.BaseExpression], str | None],
) -> MaskedLoss | None:
    """The parts of a loss whose two arguments are selected by the very same mask; None for any other call."""
    if (
        not isinstance(call, cst.Call)
        or len(call.args) not in (2, 3)
        or any(a.star for a in call.args)
    ):
        return None
    name = callee(call) or ""
    first, second = call.args[0], call.args[1]
    if name not in LOSSES or first.keyword is not None or second.keyword is not None:
        return None
    reduction = _reduction(call.args[2]) if len(call.args) > 2 else "mean"
    x, y = _selection(first.value), _selection(second.value)
    if reduction is None or x is None or y is None or not x[1].deep_equals(y[1]):
        return None
    if dtype(x[1]) != "bool" or _calls(x[1]):
        return None
    if not is_tensor(x[0]) or not is_tensor(y[0]) or dtype(x[0]) in ("int", "bool", "complex"):
        return None
    return MaskedLoss(name.rpartition(".")[2], x[0], y[0], x[1], reduction)


def masked_select(
    call: cst.Call,
    name: str,
    is_tensor: Callable[[cst.BaseExpression], bool],
    dtype: Callable[[cst.BaseExpression], str | None],
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Tensor of floats and mask of ``torch.masked_select(x, mask)``, ``x.masked_select(mask)``."""
    if any(a.star or a.keyword is not None for a in call.args):
        return None
    given = [a.value for a in call.args]
    if name == "Tensor.masked_select" and isinstance(call.func, cst.Attribute):
        given = [call.func.value, *given]
    elif name != "torch.masked_select":
        return None
    if len(given) != 2 or not all(is_tensor(one) for one in given):
        return None
    x, mask = given
    return None if dtype(x) in ("int", "bool") or dtype(mask) != "bool" else (x, mask)


def _calls(node: cst.CSTNode) -> bool:
    """Whether a mask calls something: it would be called once, not twice."""
    return isinstance(node, cst.Call) or any(_calls(child) for child in children(node))


def _reduction(arg: cst.Arg) -> str | None:
    """``reduction="sum"``, written down."""
    if arg.keyword is None or arg.keyword.value != "reduction":
        return None
    if not isinstance(arg.value, cst.SimpleString) or arg.value.raw_value not in ("mean", "sum"):
        return None
    return arg.value.raw_value


def _selection(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Tensor and mask of ``x[mask]``."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    index = node.slice[0].slice
    if not isinstance(index, cst.Index) or index.star is not None:
        return None
    return None if isinstance(index.value, cst.Tuple) else (node.value, index.value)
