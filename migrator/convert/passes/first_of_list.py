"""``val = res[0]`` and ``val += res[i]``: in torch the list shows the sum as well, as LPIPS adds up its layers.

The list of the output gets the new value, too.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.assignments import BINDING, bound, bound_by
from migrator.convert.alias import innermost
from migrator.convert.context import Context
from migrator.convert.memory import aliases
from migrator.convert.parts import NOT_KNOWN, OVERLAP, TWICE
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_INNER = (cst.Lambda, cst.FunctionDef, cst.ClassDef, cst.Global, cst.Nonlocal, cst.Del)


@converts(cst.AugAssign)
def added(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``val += res[i]`` → ``val += res[i]`` and ``res[0] = val``."""
    ctx, key = rw.ctx, ("first_of_list", node)
    if not isinstance(node.target, cst.Name) or key in ctx.asking:
        return None
    item = _shown_by(ctx, node, node.target)
    if item is None:
        return None
    assert isinstance(item.value, cst.Name)
    before, ctx.in_step = ctx.in_step, ctx.in_step | {item.value.value}
    try:
        made = rw.visit_for(key)
    finally:
        ctx.in_step = before
    lines = made if isinstance(made, list) else [made]
    return [*lines, cst.Assign([cst.AssignTarget(item)], cst.Name(node.target.value))]


def _shown_by(ctx: Context, node: cst.AugAssign, name: cst.Name) -> cst.Subscript | None:
    """``res[0]``, an item of a list of the function's own that a local name is another name of."""
    tree, kind = ctx.source.index, ctx.kind(name)
    if ctx.frame is None or not tree.has(node) or not isinstance(kind, k.Tensor) or kind.role:
        return None
    info = innermost(ctx)
    bindings = [n for n in tree.within(info.node, *BINDING) if name.value in bound(bound_by(n))]
    given = [n for n in bindings if not isinstance(n, cst.AugAssign)]
    assign = tree.around(given[0])[-1] if len(given) == 1 else None
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    item = assign.value
    if not isinstance(item, cst.Subscript) or not isinstance(item.value, cst.Name):
        return None
    index = item.slice[0].slice if len(item.slice) == 1 else None
    if not isinstance(index, cst.Index) or not isinstance(index.value, cst.Integer):
        return None
    if any(isinstance(one, (cst.For, cst.While)) for one in _above(ctx, assign, info.node)):
        return None
    if tree.within(info.node.body, *_INNER) or not _is_only_read(
        ctx, info.node, item.value, assign
    ):
        return None
    facts = aliases(ctx, info)
    state = facts.before.get(ctx.statements[-1].node) if ctx.statements else None
    held = state.get(item.value.value, frozenset()) if state is not None else frozenset({NOT_KNOWN})
    own = all(one.startswith(("new:", "box:")) for one in held)
    return item if own and held and not held & {TWICE, OVERLAP, NOT_KNOWN} else None


def _above(ctx: Context, node: cst.CSTNode, function: cst.CSTNode) -> list[cst.CSTNode]:
    around = ctx.source.index.around(node)
    return around[around.index(function) + 1 :] if function in around else list(around)


def _is_only_read(
    ctx: Context, function: cst.FunctionDef, name: cst.Name, since: cst.CSTNode
) -> bool:
    """Whether a list is bound once, and from a line on nothing is done but read its items and return it."""
    tree, kind = ctx.source.index, ctx.kind(name)
    if not isinstance(kind, k.Sequence) or kind.type != "list":
        return False
    bindings = [n for n in tree.within(function, *BINDING) if name.value in bound(bound_by(n))]
    if len(bindings) != 1 or not isinstance(bindings[0], cst.AssignTarget):
        return False
    if tree.place(bindings[0]) > tree.place(since):
        return False
    for one in tree.within(function.body, cst.Name):
        if one.value != name.value or tree.place(one) < tree.place(since):
            continue
        around = list(tree.around(one))
        if any(isinstance(n, cst.AssignTarget) for n in around):
            return False
        if any(isinstance(n, cst.AugAssign) and tree.holds(n.target, one) for n in around):
            return False
        above = around.pop()
        if isinstance(above, cst.Subscript) and above.value is one:
            if isinstance(around[-1], (cst.Attribute, cst.Subscript)):
                return False  # a method may write to it, a view of it may be written
            continue
        while isinstance(above, (cst.Element, cst.Tuple)):
            above = around.pop()
        if not isinstance(above, cst.Return):
            return False
    return True
