"""A layer that gets another bias, or none: Flax's layers say beside it whether they have one."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.layer_classes import as_torch
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_WITH_BIAS = frozenset(f"torch.nn.{name}" for name in "Linear Conv1d Conv2d Conv3d".split())


def _names_bias(ctx: Context) -> bool:
    return "bias" in ctx.source.text


@converts(cst.Assign, when=_names_bias, named=("bias",), targets=(cst.Attribute,))
def assigned(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.head.bias = self.bias``, where the head was made without one; ``layer.bias = None``."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return None
    return _bias(rw, target.value, node.value) if target.attr.value == "bias" else None


@converts(cst.Expr, when=_names_bias, named=("register_parameter",), values=(cst.Call,))
def registered(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.head.register_parameter("bias", None)``."""
    call = node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value != "register_parameter" or len(call.args) != 2:
        return None
    name, value = (a.value for a in call.args)
    bias = isinstance(name, cst.SimpleString) and name.evaluated_value == "bias"
    return _bias(rw, call.func.value, value) if bias else None


def _bias(rw: Rewriter, layer: cst.BaseExpression, value: cst.BaseExpression) -> Any:
    """The statements that give a layer a bias; None where a plain assignment does."""
    ctx = rw.ctx
    if ctx.is_self(layer):
        return None
    kind, given = ctx.kind(layer), ctx.kind(value)
    none = isinstance(value, cst.Name) and value.value == "None"
    if isinstance(kind, k.Module) and not (none and _may_have_one(kind)):
        if kind.cls not in _WITH_BIAS:
            return None
        if none:
            made = rw.visit(layer)
            return [
                cst.Assign([cst.AssignTarget(cst.Attribute(made, cst.Name(name)))], cst.Name(new))
                for name, new in (("bias", "None"), ("use_bias", "False"))
            ]
        if dict(kind.args).get("bias", True) is True and isinstance(given, k.Tensor):
            return None
    elif isinstance(kind, k.Module):
        pass  # the run tells whether it is a Linear
    elif not isinstance(kind, k.Unknown) or k.scalar_type(given) not in (None, "NoneType"):
        return None
    elif not isinstance(given, k.Tensor) and given != k.NONE and not isinstance(value, cst.Name):
        return None
    if isinstance(value, (cst.Name, cst.Attribute)) and targets.is_variable(ctx, value):
        new, _ = targets.variable_reference(rw, value)
    else:
        new = syntax.unparenthesized(rw.visit(value))
    helper = ctx.helpers.need(module_file("rules.compat.tied"), "set_bias")
    args = [cst.Arg(rw.visit(layer)), cst.Arg(new)]
    return cst.Expr(syntax.with_args(cst.Call(cst.Name(helper)), args))


def _may_have_one(kind: k.Module) -> bool:
    """Whether a module of several classes, or of any, may be one that says beside its bias whether it has one."""
    return k.is_any_module(kind) or (
        "|" in kind.cls and not _WITH_BIAS.isdisjoint(kind.cls.split("|"))
    )


@converts(cst.Assign, targets=(cst.Attribute,), named=("weight", "bias", "pos_weight"))
def after_none(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.pos_weight = torch.ones(3)`` of what the constructor of torch's layer left None, which Flax took for no data."""
    target = node.targets[0].target
    if not isinstance(target, cst.Attribute) or len(node.targets) != 1:
        return None
    if not rw.ctx.in_init or not rw.ctx.is_self(target.value):
        return None
    made = _as_data(rw, target.attr.value, node.value)
    return syntax.changed(node, value=made) if made is not None else None


@converts(cst.Expr, named=("register_buffer",), values=(cst.Call,))
def registered_after_none(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.register_buffer("pos_weight", torch.ones(3))`` of a loss."""
    call = node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value != "register_buffer" or len(call.args) != 2 or not rw.ctx.in_init:
        return None
    name, value = (one.value for one in call.args)
    if not rw.ctx.is_self(call.func.value) or not isinstance(name, cst.SimpleString):
        return None
    word = str(name.evaluated_value)
    made = _as_data(rw, word, value) if _of_loss(rw.ctx, word) else None
    if made is None:
        return None
    target = cst.AssignTarget(cst.Attribute(call.func.value, cst.Name(word)))
    return cst.Assign([target], made, semicolon=node.semicolon)


def _of_loss(ctx: Context, name: str) -> bool:
    """Whether a name is that of the weights of the loss of torch's that a class derives from."""
    owner = ctx.owner
    loss = owner is not None and (owner.torch_base or "").endswith("Loss")
    return loss and name in ("weight", "pos_weight") and as_torch(ctx, owner) is not None


def _as_data(rw: Rewriter, name: str, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """A new Variable that Flax is shown as data; None where it is none, or where it is seen for itself."""
    ctx, owner = rw.ctx, rw.ctx.owner
    base = owner.torch_base or "" if owner is not None else ""
    if owner is None or base in _RENAMED or not base.startswith("torch.nn."):
        return None
    kind = ctx.kind(value)
    if targets.makes_parameter(ctx, value):
        if not _of_loss(ctx, name) and (name == "pos_weight" or not _may_have_none(ctx, owner)):
            return None
        made: cst.BaseExpression = rw.visit(value)
    else:
        maybe = isinstance(kind, (k.Unknown, k.Optional)) and isinstance(value, cst.Name)
        if not _of_loss(ctx, name) or not (maybe or isinstance(kind, k.Tensor)):
            return None
        if targets.names_variable(ctx, value):
            return None
        made = syntax.unparenthesized(rw.visit(value))
        made = syntax.with_args(cst.Call(syntax.parse("nnx.Variable")), [cst.Arg(made)])
        if maybe:
            none = cst.Comparison(value, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))])
            made = cst.IfExp(test=none, body=cst.Name("None"), orelse=made)
    ctx.helpers.use("nnx")
    return syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(made)])


_LEAVING = frozenset({"bias", "affine"})
_ALWAYS = 3
"""No layer takes by so few arguments whether it has weights."""


def _may_have_none(ctx: Context, owner: ClassInfo) -> bool:
    """Whether a class derived from a layer may tell its constructor to make no weight or bias."""
    init = owner.methods.get("__init__")
    for call in ctx.facts.tree.within(init.node.body, cst.Call) if init is not None else ():
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "__init__":
            named = {one.keyword.value for one in call.args if one.keyword is not None}
            starred = any(one.star for one in call.args)
            if starred or named & _LEAVING or len(call.args) - len(named) > _ALWAYS:
                return True
    return False


_RENAMED = frozenset(f"torch.nn.{name}" for name in "Linear LayerNorm RMSNorm Embedding".split())
"""Layers whose weight has another name in Flax."""


@converts(cst.Assign, targets=(cst.Attribute,))
@converts(cst.Del)
@converts(cst.Expr, named=("register_buffer", "register_parameter"), values=(cst.Call,))
def inherited_weight(rw: Rewriter, node: cst.Assign | cst.Del | cst.Expr) -> Any:
    """``self.weight = nn.Parameter(…)`` in a class derived from a Linear, whose weight is ``kernel`` in Flax.

    Without a bias such a class says so beside it.

    Raises:
      Failure: a parameter of the layer is replaced.
    """
    owner = rw.ctx.owner
    if owner is None or owner.torch_base not in _RENAMED:
        return None
    name = _replaced(rw.ctx, node)
    none = isinstance(node, cst.Assign) and rw.ctx.facts.kind(node.value) == k.NONE
    kept = owner.torch_base.endswith("Norm") and as_torch(rw.ctx, owner) is not None
    if name == "weight" and not kept:
        what = "the weight of a layer is replaced in a class derived from it: Flax keeps it under another name"
        raise Failure(node, "API006", what, "write the new value into it, or derive from nn.Module")
    if name != "bias" or owner.torch_base != "torch.nn.Linear":
        return None
    if not none:
        what = "the bias of a layer is replaced in a class derived from it: Flax says beside it whether it has one"
        raise Failure(node, "API006", what, "hand bias=True on, and write the value into it")
    made = []
    for own, value in (("bias", "None"), ("use_bias", "False")):
        target = cst.AssignTarget(cst.Attribute(cst.Name("self"), cst.Name(own)))
        made.append(cst.Assign([target], cst.Name(value)))
    return made


def _replaced(ctx: Context, node: cst.Assign | cst.Del | cst.Expr) -> str:
    """The name of what a statement puts in the place of an attribute of self, or takes away."""
    if isinstance(node, cst.Expr):
        call = node.value
        registers = isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)
        if not registers or not ctx.is_self(call.func.value) or not call.args:  # type: ignore[attr-defined]
            return ""
        told = call.args[0].value  # type: ignore[attr-defined]
        named = call.func.attr.value in ("register_buffer", "register_parameter")  # type: ignore[attr-defined]
        return told.raw_value if named and isinstance(told, cst.SimpleString) else ""
    target = node.target if isinstance(node, cst.Del) else node.targets[0].target
    held = isinstance(target, cst.Attribute) and ctx.is_self(target.value)
    return target.attr.value if held and isinstance(target, cst.Attribute) else ""


@converts(cst.Call, of=(k.Function,))
def handed_to_keep(rw: Rewriter, node: cst.Call) -> Any:
    """``give(self.head, self.bias)``, which assigns it to an attribute: a parameter is handed on as its value.

    Raises:
      Failure: the two would be one parameter in torch.
    """
    ctx = rw.ctx
    given = [a.value for a in node.args if isinstance(a.value, (cst.Name, cst.Attribute))]
    if not any(_is_parameter(ctx, value) for value in given):
        return None
    kind = ctx.facts.kind(node.func)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or info.short == "__init__":
        return None
    for name, item in bound_arguments(node, info):
        if _is_parameter(ctx, item.value) and _keeps(info, name):
            what = f"{info.short}() keeps the parameter that it is handed, and gets its value here"
            raise Failure(node, "API009", what, "assign it where both modules are known")
    return None


def _is_parameter(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    registered = isinstance(kind, k.Tensor) and kind.role == "param"
    return (
        registered
        and isinstance(node, (cst.Name, cst.Attribute))
        and targets.is_variable(ctx, node)
    )


def _keeps(info: FunctionInfo, parameter: str) -> bool:
    """Whether a function assigns one of its parameters to an attribute."""
    for node in syntax.walk(info.node.body):
        if not isinstance(node, cst.Assign) or not isinstance(node.value, cst.Name):
            continue
        if node.value.value == parameter:
            if any(isinstance(one.target, cst.Attribute) for one in node.targets):
                return True
    return False
