"""Layers that keep nothing and compute the same in training: whether torch knows of them as children shows nowhere."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import ClassInfo
from migrator.infer import kinds as k

_SIZED = (
    "AvgPool",
    "MaxPool",
    "LPPool",
    "ZeroPad",
    "ConstantPad",
    "ReflectionPad",
    "ReplicationPad",
)
_ADAPTIVE = ("AdaptiveAvgPool", "AdaptiveMaxPool")
_LAYERS = frozenset(f"torch.nn.{name}{n}d" for name in (*_SIZED, *_ADAPTIVE) for n in (1, 2, 3)) | {
    f"torch.nn.{name}"
    for name in "ReLU ReLU6 GELU SiLU Mish Sigmoid Tanh Softmax LogSoftmax LeakyReLU ELU CELU SELU Softplus Softsign "
    "Hardtanh Hardswish Hardsigmoid LogSigmoid GLU Identity Flatten Unflatten Upsample PixelShuffle PixelUnshuffle "
    "Unfold Fold CosineSimilarity PairwiseDistance".split()
}
_REGISTERING = frozenset(
    "setattr __setattr__ __dict__ add_module register_module register_parameter register_buffer "
    "_modules _parameters _buffers".split()
)
"""What gives a module children and the like under names that are not written out."""
_GOING = frozenset("len enumerate zip reversed list tuple iter sum".split())
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleList")
_PLAIN = (k.Const, k.Scalar, k.DType, k.Device, k.Function)


def keeps_nothing(ctx: Context, kind: k.Kind | None) -> bool:
    """Whether a module surely has no parameters, no buffers and no mode, nor has one of those in it."""
    if not isinstance(kind, k.Module) or kind.among:
        return False
    if kind.cls in _LAYERS:
        return True
    if kind.cls in _CONTAINERS:
        return keeps_nothing(ctx, kind.item)
    info = ctx.facts.classes.get(kind.cls)
    if info is None or info.settled is not None or info.asks_training:
        return False
    if len(info.lineage()) != 1 or info.bases != [k.Class("torch.nn.Module")]:
        return False
    if _registers(ctx, info) or _is_asked_for(ctx, info):
        return False
    return all(_is_nothing(ctx, info, name, kind) for name, kind in info.attributes.items())


def _is_nothing(ctx: Context, info: ClassInfo, name: str, kind: k.Kind) -> bool:
    """Whether an attribute is a number, a text or the like, or a module that keeps nothing."""
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(kind, k.Tuple):
        return all(isinstance(item, _PLAIN) for item in kind.items)
    if isinstance(kind, k.Sequence):
        return isinstance(kind.item, _PLAIN) or keeps_nothing(ctx, kind.item)
    if isinstance(kind, k.Unknown):
        return _is_size(ctx, info, name)
    return isinstance(kind, _PLAIN) or keeps_nothing(ctx, kind)


def _is_size(ctx: Context, info: ClassInfo, name: str) -> bool:
    """``self.size = size`` of a parameter that a layer which is made there takes as its size as well."""
    init = info.methods.get("__init__")
    if init is None:
        return False
    given: list[cst.BaseExpression] = []
    for info_of in info.methods.values():
        for node in ctx.source.index.within(info_of.node.body, cst.Assign):
            if any(syntax.is_own(one.target, name) for one in node.targets):
                given.append(node.value)
    if len(given) != 1 or not isinstance(given[0], cst.Name):
        return False
    for call in ctx.source.index.within(init.node.body, cst.Call):
        if ctx.facts.callee(call) in _LAYERS:
            if any(
                isinstance(a.value, cst.Name) and a.value.value == given[0].value for a in call.args
            ):
                return True
    return False


def _registers(ctx: Context, info: ClassInfo) -> bool:
    nodes = ctx.source.index.within(info.node, cst.Name)
    return not _REGISTERING.isdisjoint(one.value for one in nodes)


def _is_asked_for(ctx: Context, info: ClassInfo) -> bool:
    """Whether a file asks for instances of a class: a walk through the model comes to those that Flax has in a list."""
    for call in ctx.source.index.of_type(cst.Call):
        if ctx.facts.callee(call) == "builtins.isinstance" and len(call.args) == 2:
            if info.node.name.value in syntax.names(call.args[1].value):
                return True
    return False


def is_only_read(ctx: Context, name: str) -> bool:
    """Whether the lists of a name are assigned, gone over and indexed, and nothing is put into them later."""
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != name:
            continue
        *_, outer, above = ctx.facts.tree.around(node)
        if isinstance(above, cst.Subscript) and above.value is node:
            if isinstance(outer, (cst.AssignTarget, cst.AugAssign, cst.Del)):
                return False
        elif isinstance(above, cst.Arg):
            func = outer.func if isinstance(outer, cst.Call) else None
            named = isinstance(func, cst.Name) and func.value in _GOING
            if not named and not above.star:
                return False
        elif isinstance(above, (cst.Attribute, cst.AugAssign, cst.Assign, cst.Return, cst.Element)):
            return False
    return True


def is_put_into(ctx: Context, name: str) -> bool:
    """Whether another layer takes the place of one in a container: ``self.layers[0] = …``."""
    for node in ctx.source.index.of_type(cst.Subscript):
        if isinstance(node.value, cst.Attribute) and node.value.attr.value == name:
            if isinstance(ctx.facts.tree.parent(node), (cst.AssignTarget, cst.Del)):
                return True
    return False
