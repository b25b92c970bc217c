"""Layers and parameters under a name that a class of another file gives something else: Flax holds on to what it saw first."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.nested_layers import becomes_function, is_layer
from migrator.convert.passes.held import assigned
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k


@converts(cst.Assign, targets=(cst.Attribute,))
def in_place_of_others(rw: Rewriter, node: cst.Assign) -> cst.Assign | None:
    """``self.act = nn.PReLU()`` where the base of another file says ``self.act = nn.ReLU()``, a function in the output.

    The same of ``self.net.head = nn.Linear(4, 4)``, where nothing is known of what the network was built with.
    """
    ctx, target = rw.ctx, node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return None
    info = ctx.owner if ctx.is_self(target.value) else ctx.class_of(ctx.kind(target.value))
    if info is None or info.torch_base is None or not _is_new_data(ctx, node.value):
        return None
    name, own = target.attr.value, ctx.is_self(target.value)
    if not (_held_others(info, name) or (not own and _was_handed(ctx, info, name))):
        return None
    ctx.helpers.use("nnx")
    value = syntax.unparenthesized(rw.visit(node.value))
    call = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(value)])
    plain = syntax.changed(target, value=rw.visit(target.value))
    return syntax.changed(node, targets=[syntax.changed(node.targets[0], target=plain)], value=call)


def _is_new_data(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value is a layer that is made here, or a parameter: data to Flax in any case."""
    if not isinstance(value, cst.Call):
        return False
    kind = ctx.facts.kind(value)
    if isinstance(kind, k.Module):
        several = kind.among if kind.cls == "torch.nn.Module" else (kind,)
        return bool(several) and not any(becomes_function(one.cls) for one in several)
    return ctx.facts.callee(value) == "torch.nn.Parameter"


def _held_others(info: ClassInfo, name: str) -> bool:
    """Whether a class of another file gives an attribute a value that may be no data."""
    foreign = [one.settled.given.get(name) for one in info.lineage() if one.settled is not None]
    return any(
        kind is not None and not is_layer(kind) and not isinstance(kind, k.Tensor)
        for kind in foreign
    )


def _was_handed(ctx: Context, info: ClassInfo, name: str) -> bool:
    """``self.head = head`` in a class of this file, of an argument that may be no layer."""
    own = (one for one in info.lineage() if one.settled is None)
    values = [value for one in own for value in assigned(ctx, one, name)]
    return any(
        isinstance(ctx.facts.kind(value), (k.Unknown, k.Optional))
        for value in values
        if isinstance(value, (cst.Name, cst.Call))
    )
