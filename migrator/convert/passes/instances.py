"""``isinstance`` and the classes it asks for."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.expand import make_tuple
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Call)
def instance_test(rw: Rewriter, node: cst.Call) -> Any:
    """``isinstance(m, nn.Conv2d)``: the class that such layers have in the output."""
    if not (type(node.func) is cst.Name and node.func.value == "isinstance"):
        return None
    if len(node.args) != 2:
        return None
    if rw.ctx.facts.qualified_name(node.args[1].value) == "torch.nn.Identity":
        return _is_identity(rw, node)
    _check_module_test(rw, node)
    classes = _public_classes(rw, node.args[1].value)
    if isinstance(classes, cst.Tuple):
        elements = [syntax.changed(e, value=_class(rw, e.value)) for e in classes.elements]
        new: cst.BaseExpression = syntax.changed(classes, elements=elements)
    else:
        new = _class(rw, classes)
    first = syntax.changed(node.args[0], value=rw.visit(node.args[0].value))
    return syntax.changed(node, args=[first, syntax.changed(node.args[1], value=new)])


def _is_identity(rw: Rewriter, node: cst.Call) -> cst.Call:
    """``isinstance(m, nn.Identity)``: all of these are one function in the output."""
    file, name = "rules.compat.layer_functions", "is_identity"
    if rw.ctx.traverses:
        file, name = "rules.compat.children", "is_identity_layer"
    function = cst.Name(rw.ctx.helpers.need(module_file(file), name))
    return syntax.with_args(cst.Call(function), [cst.Arg(rw.visit(node.args[0].value))])


def _check_module_test(rw: Rewriter, node: cst.Call) -> None:
    """``isinstance(act, nn.Module)``: an activation is a plain function in the output, and would be told from it."""
    if rw.ctx.traverses:
        return  # all layers are modules
    asked = node.args[1].value
    classes = [e.value for e in asked.elements] if isinstance(asked, cst.Tuple) else [asked]
    names = [rw.ctx.facts.qualified_name(c) for c in classes]
    if "torch.nn.Module" in names and rw.ctx.class_of(rw.ctx.kind(node.args[0].value)) is None:
        raise Failure(
            node,
            "API011",
            "layers without state are plain functions in the output, which isinstance cannot tell from others",
            "ask for what else it may be, such as `act is True` or `act is None`",
        )


_PRIVATE = {
    "torch.nn.modules.batchnorm._BatchNorm": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm",
    "torch.nn.modules.instancenorm._InstanceNorm": "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
    "torch.nn.modules.conv._ConvNd": (
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"
    ),
}
"""Base classes that torch does not document, and the layers that derive from them."""


def _public_classes(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """The classes of an isinstance, a private base class spelled as the layers that derive from it."""
    nodes = [e.value for e in node.elements] if isinstance(node, cst.Tuple) else [node]
    found: list[cst.BaseExpression] = []
    for one in nodes:
        names = _PRIVATE.get(rw.ctx.facts.qualified_name(one) or "", "").split()
        for name in names:
            item = cst.Name(name)
            rw.ctx.facts.kinds[item] = k.Class(f"torch.nn.{name}")
            found.append(item)
        if not names:
            found.append(one)
    return node if len(found) == len(nodes) else make_tuple(found)


def _class(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    from migrator.convert.passes.annotations import _CLASSES, layer_class

    name = rw.ctx.facts.qualified_name(node) or ""
    if not name.startswith("torch."):
        made: cst.BaseExpression = rw.visit(node)
        return made
    if name == "torch.nn.Module" and rw.ctx.traverses:
        rw.ctx.helpers.use("nnx")
        return syntax.parse("nnx.Pytree")  # lists and dicts of modules too
    if name in _CLASSES and name != "torch.Size":
        rw.ctx.helpers.use(_CLASSES[name].partition(".")[0])
        return syntax.parse(_CLASSES[name])
    if name == "torch.Size":
        return cst.Name("tuple")
    target = layer_class(rw, name)
    if target is None:
        raise Failure(
            node,
            "API011",
            f"{name} is a plain function in the output, which isinstance cannot tell",
            "decide by a flag instead",
        )
    return target
