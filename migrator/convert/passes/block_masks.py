"""What may be asked of a ``BlockMask`` of flex attention, which is a function of the place in the port, and no blocks."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_KEPT = ("shape", "mask_mod")


def _is_mask(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    return (kind.inner if isinstance(kind, k.Optional) else kind) == k.BLOCK_MASK


@converts(cst.Call, named=("to",))
def moved(rw: Rewriter, node: cst.Call) -> Any:
    """``block_mask.to(device)`` → ``block_mask``"""
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "to" and _is_mask(rw.ctx, func.value):
        return rw.visit(func.value)
    return None


@converts(cst.Attribute)
@converts(cst.Subscript)
def asked(rw: Rewriter, node: cst.Attribute | cst.Subscript) -> None:
    """``block_mask.sparsity()``, ``block_mask[:, :, 0]``: its blocks, which only torch's kernels have."""
    if not _is_mask(rw.ctx, node.value):
        return
    if isinstance(node, cst.Subscript) or node.attr.value not in _KEPT:
        what = "a block mask is asked for its blocks, which the port has not"
        raise Failure(node, "API002", what, "ask the function that it is made of")
