"""``.children()`` of torch's containers, which yields a layer that stands in one twice only once."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.passes.containers import is_sequential, last_name
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k

_LISTS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))
_DICT = k.Class("torch.nn.ModuleDict")
_NO_MODULES = (k.Mapping, k.Scalar, k.Const, k.DType, k.Device)
_GOING_OVER = frozenset("enumerate zip list tuple iter".split())


def keeps_order(ctx: Context, receiver: cst.BaseExpression) -> bool:
    """Whether a module is one of torch's containers, which list their layers, or derives from one and has no others."""
    kind = ctx.kind(receiver)
    if not isinstance(kind, k.Module) or kind.cls in _LISTS:
        return isinstance(kind, k.Module)
    info = ctx.facts.classes.get(kind.cls)
    if info is None or _DICT not in [base for one in info.lineage() for base in one.bases]:
        return False
    if "setattr" in ctx.words:
        return False
    family = [c for c in ctx.facts.classes.values() if info in c.lineage()]
    kept = (kind for one in family for base in one.lineage() for kind in base.attributes.values())
    return all(isinstance(one, _NO_MODULES) for one in kept)


def lists_them_once(rw: Rewriter, node: cst.Call) -> bool:
    """Whether ``net.children()`` is gone over here, and every layer of ``net`` is seen to be made for it alone."""
    assert isinstance(node.func, cst.Attribute)
    receiver = node.func.value
    around = rw.ctx.facts.tree.around(node)
    parent, above = around[-1], around[-2]
    builtin = isinstance(above, cst.Call) and isinstance(above.func, cst.Name)
    over = isinstance(parent, (cst.For, cst.CompFor)) or (
        isinstance(parent, cst.Arg)
        and (parent.star == "*" or (builtin and above.func.value in _GOING_OVER))
    )
    if not over or not is_sequential(rw, receiver) or not keeps_order(rw.ctx, receiver):
        return False
    if isinstance(receiver, cst.Name) and (rw.ctx.frame is None or _is_param(rw, receiver.value)):
        return False
    name = last_name(receiver)
    index = rw.ctx.source.index
    made = [
        assign.value
        for assign in index.of_type(cst.Assign, cst.AnnAssign)
        for target in _targets(assign)
        if last_name(target.value if isinstance(target, cst.Subscript) else target) == name
    ]
    others = (
        call.func.value
        for call in index.of_type(cst.Call)
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _ADDING
    )
    return (
        name != ""
        and bool(made)
        and all(value is not None and _of_new_layers(rw, value) for value in made)
        and all(last_name(other) != name for other in others)
    )


def _is_param(rw: Rewriter, name: str) -> bool:
    return any(name in frame.info.params for frame in rw.ctx.frames)


_ADDING = frozenset("append extend insert add_module register_module __setitem__".split())


def _targets(assign: cst.Assign | cst.AnnAssign) -> list[cst.BaseExpression]:
    found = assign.targets if isinstance(assign, cst.Assign) else [assign]
    several: list[cst.BaseExpression] = []
    for one in found:
        target = one.target
        parts = target.elements if isinstance(target, (cst.Tuple, cst.List)) else ()
        several += [part.value for part in parts] or [target]
    return several


def _of_new_layers(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """``nn.Sequential(nn.Linear(4, 4), Block(4))``: each argument makes an instance of its own."""
    if not isinstance(value, cst.Call) or rw.ctx.facts.callee(value) != "torch.nn.Sequential":
        return False
    return all(a.star == "" and a.keyword is None and _is_new(rw, a.value) for a in value.args)


def _is_new(rw: Rewriter, node: cst.BaseExpression) -> bool:
    if not isinstance(node, cst.Call):
        return False
    made = rw.ctx.kind(node.func)
    name = rw.ctx.facts.callee(node) or ""
    own = isinstance(made, k.Class) and made.name in rw.ctx.facts.classes
    return own or (name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper())
