"""``self.mask(n, batch["x"].device)``: the device of what is not known, handed to a function that has no use for one."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Attribute, named=("device",))
def handed(rw: Rewriter, node: cst.Attribute) -> Any:
    """``None``: an array has a device, and what jit traces has none."""
    ctx = rw.ctx
    if node.attr.value != "device" or not isinstance(ctx.kind(node.value), k.Unknown):
        return None
    if not isinstance(ctx.kind(node), (k.Unknown, k.Device)) or not ctx.source.index.has(node):
        return None
    item = ctx.source.index.parent(node)
    if isinstance(item, cst.Assign) and len(item.targets) == 1:
        return cst.Name("None") if _only_moves(ctx, item.targets[0].target) else None
    if not isinstance(item, cst.Arg) or item.value is not node or item.star:
        return None
    return cst.Name("None") if _takes_device(ctx, item) else None


def _only_moves(ctx: Context, target: cst.BaseExpression) -> bool:
    """Whether a local name is read for nothing but where tensors go: ``x.to(device)``, ``device=device``."""
    if not isinstance(target, cst.Name) or ctx.frame is None:
        return False
    tree = ctx.source.index
    names = tree.within(ctx.frame.info.node.body, cst.Name)
    read = [n for n in names if n.value == target.value]
    items = [tree.parent(n) for n in read]
    assigned = [one for one in items if isinstance(one, cst.AssignTarget)]
    for item in items:
        if isinstance(item, cst.AssignTarget):
            continue
        call = tree.parent(item) if isinstance(item, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        named = item.keyword is not None and item.keyword.value == "device"
        moves = isinstance(call.func, cst.Attribute) and call.func.attr.value == "to"
        torch = (ctx.facts.callee(call) or "").startswith(("torch.", "Tensor."))
        if not (moves or (named and torch)):
            return False
    return len(assigned) == 1 and len(items) > 1


def _takes_device(ctx: Context, item: cst.Arg) -> bool:
    """Whether an argument is the device of a function of the project."""
    call = ctx.source.index.parent(item)
    info = ctx.facts.names.get(ctx.facts.callee(call) or "") if isinstance(call, cst.Call) else None
    if info is None:
        return False
    if item.keyword is not None:
        name = item.keyword.value
    else:
        place = next(i for i, one in enumerate(call.args) if one is item)
        if any(one.star or one.keyword is not None for one in call.args[:place]):
            return False
        names = [one for one in info.params if one not in ("self", "cls")]
        name = names[place] if place < len(names) else ""
    return isinstance(info.params.get(name), k.Device)
