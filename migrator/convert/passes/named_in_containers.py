"""``setattr(self.net, "extra", nn.Linear(2, 2))``: torch's containers run, or go over, whatever they have as a child.

Flax keeps their layers in a list or by their names, and an attribute beside those is none of them.
"""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.convert.passes.numbered_children import may_be_number
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ModuleList"})
_TENSORS = ("register_buffer", "register_parameter")
_CHILDREN = ("add_module", "register_module")


def _container(ctx: Context, node: cst.BaseExpression) -> str:
    """The class of torch's that a container is of, or derives from; empty for anything else, and for ``self``."""
    kind = ctx.kind(node)
    if not isinstance(kind, k.Module) or ctx.is_self(node):
        return ""
    info = ctx.class_of(kind)
    base = (info.torch_base or "") if info is not None else kind.cls
    return base if base in _CONTAINERS else ""


@converts(cst.Expr, named=(*_TENSORS, *_CHILDREN), values=(cst.Call,))
def registered(rw: Rewriter, node: cst.Expr) -> None:
    """``self.layers.add_module("extra", …)`` of a ModuleList, ``self.net.register_buffer("mean", …)``.

    Raises:
      Failure: the list of the output would not have the layer, or takes the tensor for one.
    """
    call = node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return
    base, method = _container(rw.ctx, call.func.value), call.func.attr.value
    if not base or not call.args or method not in (*_TENSORS, *_CHILDREN):
        return
    if method in _TENSORS:
        what = "a tensor is registered in a container, which in the output has layers alone"
        advice = "register it in the module that has the container"
        raise Failure(node, "API007", what, advice)
    name = next((a.value for a in call.args if a.keyword and a.keyword.value == "name"), None)
    told = name if name is not None else call.args[0].value
    if base == "torch.nn.ModuleList" and not may_be_number(rw.ctx, told):
        raise _further(node, base)


@converts(cst.Call, called=("builtins.setattr",))
def by_name(rw: Rewriter, node: cst.Call) -> None:
    """``setattr(self.net, "extra", nn.Linear(2, 2))``, and ``self.net._modules["extra"] = …``, which is read so.

    Raises:
      Failure: the container may have no layer of that name.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.setattr" or len(node.args) != 3:
        return
    held, told, value = (arg.value for arg in node.args)
    base = _container(ctx, held)
    if not base or not isinstance(ctx.kind(value), (k.Module, k.Unknown, k.Optional, k.Function)):
        return
    kind, own = ctx.facts.kind(told), ctx.kind(held)
    if isinstance(kind, k.Const):
        if not _has(ctx, own, str(kind.value)):
            raise _further(node, base)
    elif isinstance(told, cst.FormattedString) and not may_be_number(ctx, told):
        raise _further(node, base)


@converts(cst.Assign, targets=(cst.Attribute,))
def assigned(rw: Rewriter, node: cst.Assign) -> None:
    """``self.net.extra = nn.Linear(2, 2)``.

    Raises:
      Failure: the container may have no layer of that name.
    """
    ctx = rw.ctx
    for target in (one.target for one in node.targets):
        if not isinstance(target, cst.Attribute) or not isinstance(ctx.kind(node.value), k.Module):
            continue
        base = _container(ctx, target.value)
        if base and not _has(ctx, ctx.kind(target.value), target.attr.value):
            raise _further(node, base)


def _has(ctx: Context, container: k.Kind, name: str) -> bool:
    """Whether a container has a child of a name, for all that is known of it, or it is a number."""
    children = dict(container.args) if isinstance(container, k.Module) else {}
    own = ctx.class_of(container)
    told = name.isdigit() or name in children or _is_named(ctx, name)
    return told or (own is not None and own.attribute(name) is not None)


def _is_named(ctx: Context, name: str) -> bool:
    """Whether the file makes a container with such a child: ``("fc", layer)``, ``{"fc": layer}``, ``dict(fc=layer)``."""
    tree = ctx.facts.tree
    for call in tree.of_type(cst.Call):
        if any(one.keyword is not None and one.keyword.value == name for one in call.args):
            return True
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in _CHILDREN:
            if call.args and ctx.facts.kind(call.args[0].value) == k.Const(name):
                return True
    return any(
        isinstance(tree.parent(one), (cst.Element, cst.DictElement))
        for one in tree.of_type(cst.SimpleString)
        if one.evaluated_value == name
    )


def _further(node: cst.CSTNode, base: str) -> Failure:
    short = base.removeprefix("torch.nn.")
    what = f"a {short} gains a further layer by a name, which it runs or goes over from then on"
    return Failure(node, "API007", what, f"add it as the methods of {short} do")
