"""``list(zip(self.queries, self.keys))``: a list of what the module has in containers under other names."""

from __future__ import annotations

import libcst as cst

from migrator.convert.containing import levels
from migrator.convert.context import Context
from migrator.convert.passes.without_state import is_put_into, keeps_nothing
from migrator.infer import kinds as k

_LISTS = ("builtins.list", "builtins.tuple")
_GOING = ("builtins.zip", "builtins.enumerate", "builtins.reversed")
_CONTAINERS = ("torch.nn.ModuleList", "torch.nn.Sequential")


def members(ctx: Context, node: cst.BaseExpression) -> bool | None:
    """Whether a list or tuple is made by going over containers of the module alone, beside what holds no modules.

    None where it is no such list, or goes over no modules.
    """
    if isinstance(node, cst.ListComp):
        return _gathered(ctx, node)
    if not isinstance(node, cst.Call) or ctx.facts.callee(node) not in _LISTS:
        return None
    return _over(ctx, node)


def _over(ctx: Context, node: cst.BaseExpression) -> bool | None:
    if isinstance(node, cst.Call) and ctx.facts.callee(node) in (*_LISTS, *_GOING):
        found = [_over(ctx, item.value) for item in node.args if not item.star]
        if len(found) != len(node.args) or False in found:
            return False if found or node.args else None
        return True if True in found else None
    if isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice):
        return _over(ctx, node.value)
    kind = ctx.facts.kind(node)
    if isinstance(node, cst.Attribute) and ctx.is_self(node.value):
        if isinstance(kind, k.Module) and kind.cls in _CONTAINERS and ctx.owner is not None:
            optional = isinstance(ctx.owner.attribute(node.attr.value), k.Optional)
            return not optional and not is_put_into(ctx, node.attr.value)
    held = [one for one in levels(kind) if isinstance(one, k.Module)]
    return None if all(keeps_nothing(ctx, one) for one in held) else False


def _gathered(ctx: Context, node: cst.ListComp) -> bool | None:
    """``[layer[0] for layer in self.layers if isinstance(layer[0], Head)]``, also where nothing else says what they are."""
    loop, taken = node.for_in, node.elt
    while isinstance(taken, cst.Subscript) and len(taken.slice) == 1:
        item, kind = taken.slice[0].slice, ctx.facts.kind(taken.value)
        held = isinstance(kind, k.Module) and kind.cls in _CONTAINERS
        if (
            not held
            or not isinstance(item, cst.Index)
            or k.scalar_type(ctx.facts.kind(item.value)) != "int"
        ):
            break
        taken = taken.value
    own = loop.inner_for_in is None and isinstance(taken, cst.Name) and _is_name(loop.target, taken)
    if (
        own
        and isinstance(loop.iter, (cst.Attribute, cst.Subscript))
        and _over(ctx, loop.iter) is not None
    ):
        return _over(ctx, loop.iter)
    asked = any(_is_module(ctx, test.test, node.elt) for test in loop.ifs)
    kind = ctx.facts.kind(node.elt)
    return False if asked and not isinstance(kind, k.Module) else None


def _is_name(node: cst.CSTNode, name: cst.Name) -> bool:
    return isinstance(node, cst.Name) and node.value == name.value


def _is_module(ctx: Context, test: cst.BaseExpression, item: cst.BaseExpression) -> bool:
    """``isinstance(item, Head)`` of a class of modules."""
    if not isinstance(test, cst.Call) or ctx.facts.callee(test) != "builtins.isinstance":
        return False
    if len(test.args) != 2 or not test.args[0].value.deep_equals(item):
        return False
    classes = test.args[1].value
    each = [e.value for e in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
    for one in each:
        kind = ctx.facts.kind(one)
        name = kind.name if isinstance(kind, k.Class) else ""
        info = ctx.facts.classes.get(name)
        if not name.startswith("torch.nn.") and (info is None or not info.torch_base):
            return False
    return bool(each)
