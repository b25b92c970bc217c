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
