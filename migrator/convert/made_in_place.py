"""Layers that are made with ``inplace=True`` and handed around, so that any call may be one of theirs."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.ordered_dicts import is_ordered
from migrator.infer import kinds as k


def last_name(node: cst.CSTNode | None) -> str:
    """``act`` of ``self.act``, ``self.act[0]`` and ``act``."""
    while isinstance(node, (cst.Subscript, cst.Call)):
        node = node.value if isinstance(node, cst.Subscript) else node.func
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def is_handed_on(ctx: Context, call: cst.Call) -> bool:
    """``partial(nn.ReLU, inplace=True)``, ``act_layer(inplace=True)``, ``{"relu": nn.ReLU(True)}``: made, and kept
    where no kind says so."""
    made = ctx.facts.kind(call)
    if not isinstance(made, k.Module):
        named = [
            a.value for a in call.args if a.keyword is not None and a.keyword.value == "inplace"
        ]
        called = ctx.facts.callee(call) or ""
        function = isinstance(made, k.Tensor) or called.startswith("torch.nn.functional.")
        return not function and any(syntax.code(value) != "False" for value in named)
    if k.in_place(made) is False:
        return False
    around = ctx.source.index.around(call)
    while isinstance(around[-1], _LISTING) or isinstance(ctx.facts.kind(around[-1]), k.Mapping):
        around.pop()  # nn.Sequential(OrderedDict([("act", nn.ReLU(inplace=True))]))
    if isinstance(around[-1], cst.DictElement) and is_ordered(ctx, around):
        return False
    parent = around[-1]
    if isinstance(parent, cst.Call):
        func = parent.func
        grows = isinstance(func, cst.Attribute) and func.attr.value in _GROWING
        return not (grows or isinstance(ctx.facts.kind(parent), k.Module))
    return isinstance(parent, (cst.DictElement, cst.Lambda))


_LISTING = (cst.Arg, cst.Element, cst.List, cst.Tuple)
_GROWING = frozenset({"append", "extend", "insert", "add_module", "__init__"})


def makes(ctx: Context, call: cst.Call, cls: str) -> bool:
    """Whether ``partial(nn.ReLU, inplace=True)`` makes layers of a class."""
    first = call.args[0].value if call.args else call.func
    if is_holder(ctx, call.func):
        return ctx.facts.kind(call.func) == k.Class(cls)
    return any(ctx.facts.qualified_name(node) == cls for node in (first, call.func))


def is_holder(ctx: Context, func: cst.BaseExpression) -> bool:
    """``Act`` of another file, which is ``partial(nn.ReLU, inplace=True)`` there."""
    found = isinstance(func, (cst.Name, cst.Attribute)) and isinstance(
        ctx.facts.kind(func), k.Class
    )
    return found and last_name(func) in ctx.foreign_holders
