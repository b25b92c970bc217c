"""``self.mask(n, batch["x"].device)``: the device of what is not known, handed to a function that has no use for one."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.tree import Tree


@converts(cst.Attribute, named=("device",))
def handed(rw: Rewriter, node: cst.Attribute) -> Any:
    """``None``: an array has a device, and what jit traces has none."""
    ctx = rw.ctx
    if node.attr.value != "device" or not isinstance(ctx.kind(node.value), k.Unknown):
        return None
    if not isinstance(ctx.kind(node), (k.Unknown, k.Device)) or not ctx.source.index.has(node):
        return None
    item = ctx.source.index.parent(node)
    target = _bound(ctx, node, item)
    if target is not None:
        return cst.Name("None") if _only_moves(ctx, target) else None
    if not isinstance(item, cst.Arg) or item.value is not node or item.star:
        return None
    return cst.Name("None") if _takes_device(ctx, item) else None


def _bound(ctx: Context, node: cst.Attribute, item: cst.CSTNode) -> cst.BaseExpression | None:
    """What an assignment binds the device to: ``device = x.device``, ``dtype, device = x.dtype, x.device``."""
    tree, place = ctx.source.index, -1
    if isinstance(item, cst.Element):
        several = tree.parent(item)
        if not isinstance(several, cst.Tuple):
            return None
        place = next(i for i, one in enumerate(several.elements) if one is item)
        size, item = len(several.elements), tree.parent(several)
        if any(isinstance(one, cst.StarredElement) for one in several.elements):
            return None
    if not isinstance(item, cst.Assign) or len(item.targets) != 1:
        return None
    target = item.targets[0].target
    if place < 0:
        return target if item.value is node else None
    if not isinstance(target, cst.Tuple) or len(target.elements) != size:
        return None
    if any(isinstance(one, cst.StarredElement) for one in target.elements):
        return None
    return target.elements[place].value


def _only_moves(ctx: Context, target: cst.BaseExpression) -> bool:
    """Whether a local name is read for nothing but where tensors go: ``x.to(device)``, ``device=device``, or is
    handed to a function of the project that takes a device."""
    if not isinstance(target, cst.Name) or ctx.frame is None:
        return False
    tree = ctx.source.index
    names = tree.within(ctx.frame.info.node.body, cst.Name)
    items = [tree.parent(n) for n in names if n.value == target.value and not _is_word(tree, n)]
    assigned = [one for one in items if isinstance(one, cst.AssignTarget) or _is_target(tree, one)]
    for item in items:
        if item in assigned:
            continue
        call = tree.parent(item) if isinstance(item, cst.Arg) else None
        if not isinstance(call, cst.Call):
            return False
        named = item.keyword is not None and item.keyword.value == "device"
        moves = isinstance(call.func, cst.Attribute) and call.func.attr.value == "to"
        torch = (ctx.facts.callee(call) or "").startswith(("torch.", "Tensor."))
        if not (moves or (named and torch) or _takes_device(ctx, item)):
            return False
    return len(assigned) == 1 and len(items) > 1


def _is_word(tree: Tree, node: cst.Name) -> bool:
    """Whether a name is no variable: ``x.device``, ``device=``."""
    above = tree.parent(node)
    if isinstance(above, cst.Attribute):
        return above.attr is node
    return isinstance(above, cst.Arg) and above.keyword is node


def _is_target(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether an element of a tuple is bound by an assignment: ``dtype, device = …``."""
    several = tree.parent(node) if isinstance(node, cst.Element) else None
    return isinstance(several, cst.Tuple) and isinstance(tree.parent(several), cst.AssignTarget)


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
