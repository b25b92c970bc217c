"""Layers that hand gradients on and get none themselves: those without parameters, and those that a constructor freezes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k

_WITHOUT = frozenset(
    "Identity ReLU ReLU6 LeakyReLU GELU SiLU Mish ELU SELU CELU Tanh Sigmoid Softplus Softmax LogSoftmax Hardtanh "
    "Hardswish Hardsigmoid Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout Flatten Unflatten "
    "MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d "
    "AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d Upsample PixelShuffle ZeroPad2d "
    "ReflectionPad1d ReflectionPad2d ReplicationPad2d ConstantPad1d ConstantPad2d".split()
)


def has_no_trained(ctx: Context, call: cst.Call) -> bool:
    """Whether a call runs a layer that surely has no parameter which is trained."""
    kind, func = ctx.kind(call.func), call.func
    if not isinstance(kind, k.Module):
        return False
    if kind.cls.startswith("torch.nn.") and kind.cls.rpartition(".")[2] in _WITHOUT:
        return True
    return isinstance(func, cst.Attribute) and ctx.is_self(func.value) and _is_frozen(ctx, func)


def _is_frozen(ctx: Context, layer: cst.Attribute) -> bool:
    """Whether the constructor of its class freezes all of a layer, whatever it is given, and nothing thaws it."""
    tree = ctx.facts.tree
    owner = next(
        (one for one in reversed(tree.around(layer)) if isinstance(one, cst.ClassDef)), None
    )
    info = next((one for one in ctx.facts.classes.values() if one.node is owner), None)
    init = info.methods.get("__init__") if info is not None else None
    if init is None or not any(_freezes(line, layer) for line in init.node.body.body):
        return False
    return all(_is_false(one) for one in _told(ctx))


def _freezes(line: cst.CSTNode, layer: cst.Attribute) -> bool:
    """``self.f.requires_grad_(False)``, ``for p in self.f.parameters(): p.requires_grad = False``."""
    match line:
        case cst.SimpleStatementLine(
            [cst.Expr(cst.Call(cst.Attribute(of, cst.Name("requires_grad_")), [one]))]
        ):
            return of.deep_equals(layer) and _is_false(one.value)
        case cst.For(cst.Name(name), cst.Call(cst.Attribute(of, cst.Name("parameters")), []), body):
            return of.deep_equals(layer) and any(_is_of(one, name) for one in body.body)
    return False


def _is_of(line: cst.CSTNode, name: str) -> bool:
    match line:
        case cst.SimpleStatementLine(
            [
                cst.Assign(
                    [cst.AssignTarget(cst.Attribute(cst.Name(of), cst.Name("requires_grad")))],
                    value,
                )
            ]
        ):
            return of == name and _is_false(value)
        case cst.SimpleStatementLine(
            [cst.Expr(cst.Call(cst.Attribute(cst.Name(of), cst.Name("requires_grad_")), [one]))]
        ):
            return of == name and _is_false(one.value)
        case cst.Assign(
            [cst.AssignTarget(cst.Attribute(cst.Name(of), cst.Name("requires_grad")))], value
        ):
            return of == name and _is_false(value)
    return False


def _told(ctx: Context) -> Iterator[cst.BaseExpression]:
    """What anything in the file is told about its training."""
    tree = ctx.facts.tree
    for line in tree.of_type(cst.Assign):
        for one in line.targets:
            if isinstance(one.target, cst.Attribute) and one.target.attr.value == "requires_grad":
                yield line.value
    for call in tree.of_type(cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_":
            yield call.args[0].value if call.args else cst.Name("True")


def _is_false(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "False"
