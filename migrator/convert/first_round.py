"""``out = x; for layer in self.body: out = layer(out)``: what works in place gets what another layer made, not ``x``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by
from migrator.convert.context import Context
from migrator.convert.passing import is_replaced, passes
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.beginnings import Beginnings

_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential"})


def begins_anew(ctx: Context, call: cst.Call) -> bool:
    """Whether a call runs all layers of a list, each on what the one before gave, and the first makes a new tensor.

    So the one that works in place never gets what the loop began with, nor anything that has another name.
    """
    tree, frame = ctx.facts.tree, ctx.frame
    if frame is None or frame.info.owner is None or not tree.has(call) or len(call.args) != 1:
        return False
    line, loop = _around(ctx, call)
    given = call.args[0]
    if line is None or loop is None or given.star or given.keyword is not None:
        return False
    target = line.targets[0].target
    if not isinstance(target, cst.Name) or not target.deep_equals(given.value):
        return False
    layers = _layers(ctx, call.func, loop)
    if layers is None or target.value in bound(loop.target):
        return False
    return _is_of_torch(ctx.kind(layers)) and _first_is_new(ctx, frame.info.owner, layers, call)


def _around(ctx: Context, call: cst.Call) -> tuple[cst.Assign | None, cst.For | None]:
    """The assignment of a call that is all there is in a loop."""
    around = ctx.facts.tree.around(call)
    if len(around) < 4:
        return None, None
    loop, block, line, assign = around[-4:]
    if not isinstance(loop, cst.For) or not isinstance(block, cst.IndentedBlock):
        return None, None
    alone = len(block.body) == 1 and isinstance(line, cst.SimpleStatementLine)
    if not alone or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None, None
    return assign, loop if loop.orelse is None else None


def _layers(ctx: Context, func: cst.BaseExpression, loop: cst.For) -> cst.Attribute | None:
    """``self.body`` of ``for layer in self.body`` and of ``for i in range(len(self.body))``, where all of it is run."""
    if not isinstance(loop.target, cst.Name):
        return None
    item, name = loop.iter, loop.target.value
    if isinstance(func, cst.Name) and func.value == name:
        return item if isinstance(item, cst.Attribute) and ctx.is_self(item.value) else None
    if not isinstance(func, cst.Subscript) or not isinstance(func.value, cst.Attribute):
        return None
    text = syntax.code(func.value)
    asked = syntax.code(loop.iter).replace(" ", "")
    whole = (f"range(len({text}))", f"range(0,len({text}))")
    if syntax.code(func) != f"{text}[{name}]" or asked not in whole:
        return None
    return func.value if ctx.is_self(func.value.value) else None


def _is_of_torch(kind: k.Kind) -> bool:
    """Whether all layers of a list are torch's, which keep nothing of what they are handed."""
    if not isinstance(kind, k.Module) or kind.cls not in _LISTS:
        return False
    item = kind.item
    several = (item.among or (item,)) if isinstance(item, k.Module) else ()
    return bool(several) and all(
        isinstance(one, k.Module)
        and one.cls.startswith("torch.nn.")
        and one.cls not in (*_LISTS, "torch.nn.Module")
        for one in several
    )


def _first_is_new(ctx: Context, owner: ClassInfo, layers: cst.Attribute, call: cst.Call) -> bool:
    """Whether the first of a class's layers makes a new tensor, however it is built."""
    init = owner.methods.get("__init__")
    linked = ctx.facts.linked
    others = [one for one in ctx.facts.classes.values() if one is not owner]
    if init is None or len(owner.lineage()) > 1 or any(owner in c.lineage() for c in others):
        return False
    if linked is not None and linked.shared(owner.name):
        return False  # what derives from it may put another first
    if is_replaced(ctx, {layers.attr.value, ""}) or _is_set_elsewhere(ctx, owner, layers):
        return False
    firsts = Beginnings(ctx.facts, init, layers, call).found
    return bool(firsts) and all(one is not None and _makes_new(ctx, one) for one in firsts)


def _makes_new(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a layer neither hands on what it is called with nor writes to it."""
    from migrator.convert.writers import may_write

    kind = ctx.facts.kind(node)
    if not isinstance(kind, k.Module) or not kind.cls.startswith("torch.nn."):
        return False
    return not passes(ctx, kind) and not may_write(ctx, kind, node)


def _is_set_elsewhere(ctx: Context, owner: ClassInfo, layers: cst.Attribute) -> bool:
    """Whether a method beside the constructor, or other code of the file, binds an attribute of the name."""
    init = owner.methods["__init__"].node
    for one in ctx.facts.tree.of_type(*BINDING):
        target = bound_by(one)
        if isinstance(target, cst.Attribute) and target.attr.value == layers.attr.value:
            if not ctx.facts.tree.holds(init, one):
                return True
    return False
