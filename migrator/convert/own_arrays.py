"""Tensors that an object of a plain class makes and writes into, as a replay buffer does: ``self.obs[i] = o``.

In JAX the object gets another array. Whoever has got the tensor, or a part of it, would see the write in torch: it must
not be handed out.
"""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import ClassInfo
from migrator.infer import kinds as k

_FRESH = frozenset(
    f"torch.{name}"
    for name in "zeros ones empty full rand randn arange zeros_like ones_like empty_like full_like eye linspace".split()
)
"""Functions that make a tensor which nobody else has."""
_ASKED = frozenset("shape dtype device ndim".split())
_ASKING = frozenset("size dim numel nelement".split())
_COPYING = frozenset("clone sum mean std var norm max min any all abs exp log sqrt".split())
"""Methods whose result is another tensor."""


def is_own_array(ctx: Context, target: cst.Attribute) -> bool:
    """Whether ``self.obs`` is such a tensor of the object whose method is being converted."""
    info = ctx.owner
    if info is None or info.torch_base is not None or not ctx.is_self(target.value):
        return False
    if (
        info.settled is not None
        or len(info.lineage()) > 1
        or not isinstance(ctx.kind(target), k.Tensor)
    ):
        return False
    name = target.attr.value
    if _is_traced(ctx, info):
        return False
    if any(info in one.lineage() and one is not info for one in ctx.facts.classes.values()):
        return False
    linked = ctx.facts.linked
    if linked is not None and linked.shared(info.name):
        return False
    return _is_made_here(ctx, info, name) and not _is_handed_out(ctx, name)


def _is_traced(ctx: Context, info: ClassInfo) -> bool:
    """Whether the forward pass of a module may come to a method, or a module keeps an object: jit would leave tracers."""
    from migrator.convert.passes.freezing import forward_pass

    if any(one in forward_pass(ctx) for one in info.methods.values()):
        return True
    modules = [one for one in ctx.facts.classes.values() if one.torch_base and not one.settled]
    return any(
        isinstance(call.func, cst.Name) and call.func.value == info.node.name.value
        for one in modules
        for call in ctx.source.index.within(one.node, cst.Call)
    )


def _is_made_here(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether all that the attributes of that name are given in the file are new tensors."""
    given = [
        (line.value, one.target)
        for line in ctx.source.index.of_type(cst.Assign)
        for one in line.targets
        if isinstance(one.target, cst.Attribute) and one.target.attr.value == name
    ]
    mine = [value for value, one in given if isinstance(one.value, cst.Name)]
    return bool(mine) and all(
        isinstance(value, cst.Call) and ctx.facts.callee(value) in _FRESH for value, _ in given
    )


def _is_handed_out(ctx: Context, name: str) -> bool:
    """Whether anything in the file may hold an attribute of that name, or a part of it, under another name."""
    if {"getattr", "vars", "__dict__", "attrgetter", "copy", "setattr"} & ctx.words:
        return True
    return any(
        node.attr.value == name and not _is_used_up(ctx, node)
        for node in ctx.source.index.of_type(cst.Attribute)
    )


def _is_used_up(ctx: Context, node: cst.Attribute) -> bool:
    """Whether what stands around ``self.obs`` keeps none of it."""
    inner: cst.CSTNode = node
    for outer in reversed(ctx.source.index.around(node)):
        match outer:
            case cst.AssignTarget():
                return outer.target is inner
            case cst.Del():
                return True
            case cst.AugAssign():
                return outer.target is inner
            case cst.Subscript(value=value) if value is inner:
                if _copies(ctx, outer):
                    return True
            case cst.BinaryOperation() | cst.Comparison() | cst.ComparisonTarget():
                return True
            case cst.Attribute(value=value, attr=cst.Name(word)) if value is inner:
                written = word.endswith("_") and not word.endswith("__")
                return word in _ASKED | _ASKING | _COPYING or (
                    written and _is_statement(ctx, outer)
                )
            case cst.Arg():
                call = ctx.source.index.around(outer)[-1]
                return isinstance(call, cst.Call) and ctx.facts.callee(call) == "builtins.len"
            case _:
                return False
        inner = outer
    return False


def _is_statement(ctx: Context, method: cst.Attribute) -> bool:
    """``self.obs.zero_()`` of which nobody takes what it gives."""
    *_, line, call = ctx.source.index.around(method)
    return isinstance(call, cst.Call) and isinstance(line, cst.Expr)


def _copies(ctx: Context, node: cst.Subscript) -> bool:
    """``self.obs[places]``: what is looked up by a tensor is a copy."""
    parts = [one.slice.value for one in node.slice if isinstance(one.slice, cst.Index)]
    kinds = [ctx.kind(one) for one in parts]
    return any(isinstance(one, k.Tensor) and one.rank != 0 for one in kinds)
