"""``layer.reset_parameters()`` of torch's layers."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

_NORMS = tuple(
    f"torch.nn.{name}" for name in ("BatchNorm", "InstanceNorm", "LayerNorm", "GroupNorm")
)
_WEIGHTED = ("torch.nn.Linear", "torch.nn.Conv")


@converts(cst.Call, named=("reset_parameters",))
def reset(rw: Rewriter, node: cst.Call) -> Any:
    """The layer's parameters are drawn anew where it is known what it is.

    Raises:
      Failure: it draws its parameters in another way.
    """
    ctx = rw.ctx
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "reset_parameters":
        return None
    if node.args:
        return None
    told = ctx.source.index.has(node)
    if (
        told
        and k.is_unknown_module(ctx.kind(node.func.value))
        and isinstance(ctx.kind(node.func), k.Unknown)
    ):
        return _reset_unknown(rw, node, node.func)
    if not is_torchs(ctx, node.func):
        return None
    return reset_layer(rw, node, node.func.value, _layers(ctx, node.func.value))


def _reset_unknown(rw: Rewriter, node: cst.Call, func: cst.Attribute) -> cst.BaseExpression | None:
    """``module.reset_parameters()`` of a module that is not known: one of the project's, or a layer of torch's."""
    ctx = rw.ctx
    if ctx.frame is None or ctx.plan.how(ctx.frame.info) is None:
        return None
    ctx.effect(node)
    name = ctx.helpers.need(module_file("rules.compat.redraw"), "reset_parameters")
    made = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(func.value))])
    return syntax.add_keyword(made, "rngs", ctx.rngs(node))


@converts(cst.Call, when=lambda ctx: {"hasattr", "reset_parameters"} <= ctx.words | _said(ctx))
def may_reset(rw: Rewriter, node: cst.Call) -> Any:
    """``hasattr(m, "reset_parameters")`` of a module that is not known: layers of Flax have no such method."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.hasattr" or len(node.args) != 2 or ctx.frame is None:
        return None
    module, name = (arg.value for arg in node.args)
    if not isinstance(name, cst.SimpleString) or name.evaluated_value != "reset_parameters":
        return None
    if not k.is_unknown_module(ctx.kind(module)) or ctx.plan.how(ctx.frame.info) is None:
        return None
    for info in ctx.facts.classes.values():
        own = info.torch_base == "torch.nn.Module" and info.method("reset_parameters") is None
        if own and definitions.layers(f"torch.nn.{info.short}"):  # which has_reset goes by
            what = f"{info.short} is called like a layer of torch, which has such a method"
            raise Failure(node, "API005", what, "ask for the classes that are meant by isinstance")
    helper = ctx.helpers.need(module_file("rules.compat.redraw"), "has_reset")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(module))])


def _said(ctx: Context) -> frozenset[str]:
    """The method's name, where the file says it in a text."""
    return frozenset({"reset_parameters"} if "reset_parameters" in ctx.source.text else ())


_RESETTING = {
    **dict.fromkeys(
        (
            *(f"torch.nn.Conv{n}d" for n in (1, 2, 3)),
            *(f"torch.nn.ConvTranspose{n}d" for n in (1, 2, 3)),
            *(f"torch.nn.{kind}Norm{n}d" for kind in ("Batch", "Instance") for n in (1, 2, 3)),
            *(
                f"torch.nn.{name}"
                for name in ("SyncBatchNorm", "LayerNorm", "RMSNorm", "GroupNorm")
            ),
            *(f"torch.nn.{name}" for name in ("Linear", "Bilinear", "Embedding", "EmbeddingBag")),
            *(f"torch.nn.{kind}{cell}" for kind in ("RNN", "GRU", "LSTM") for cell in ("", "Cell")),
            "torch.nn.PReLU",
        ),
        "reset_parameters",
    ),
    "torch.nn.MultiheadAttention": "_reset_parameters",
    "torch.nn.Transformer": "_reset_parameters",
}
"""Layers of torch whose constructors call a method, which a derived class may replace."""


def replaced_reset(ctx: Context, owner: ClassInfo) -> list[cst.BaseSmallStatement]:
    """``self.reset_parameters()`` behind the constructor of a layer, which in torch calls what a derived class has."""
    name = _RESETTING.get(owner.torch_base or "", "")
    method = owner.methods.get(name)
    if method is None or any(name in parent.methods for parent in owner.lineage()[1:]):
        return []
    init = owner.methods.get("__init__")
    if init is not None and init.settled is None and _calls_anyway(init.node, name):
        if _draws_anew(ctx, method):
            return []  # what the first call wrote, the second writes again
    how = "rngs=rngs" if ctx.plan.how(method) == "param" else ""
    return [cst.Expr(syntax.parse(f"self.{name}({how})"))]


def _draws_anew(ctx: Context, method: FunctionInfo) -> bool:
    """Whether a method writes nothing that hangs on what was there before."""
    tree = ctx.facts.tree
    if tree.within(method.node.body, cst.AugAssign):
        return False
    for call in tree.within(method.node.body, cst.Call):
        name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if name.endswith("_") and name not in _ANEW:
            if not (ctx.facts.callee(call) or "").startswith("torch.nn.init."):
                return False
    return True


_ANEW = frozenset("normal_ uniform_ fill_ zero_".split())


def _calls_anyway(init: cst.FunctionDef, name: str) -> bool:
    """Whether a constructor calls a method of its own anyway, whatever it is given."""
    for line in init.body.body:
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            value = small.value if isinstance(small, cst.Expr) else None
            if isinstance(value, cst.Call) and syntax.code(value.func) == f"self.{name}":
                return True
    return False


def reset_layer(
    rw: Rewriter, node: cst.Call, layer: cst.BaseExpression, classes: list[str]
) -> cst.BaseExpression:
    """A call that draws the parameters of a layer of one of these classes anew, as torch's constructors do."""
    ctx = rw.ctx
    helper = _helper(classes)
    if helper is None:
        raise Failure(
            node,
            "API001",
            "reset_parameters() of a torch layer has no conversion",
            "build the layer anew",
        )
    ctx.effect(node)
    name = ctx.helpers.need(module_file("rules.compat.redraw"), helper)
    made = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(layer))])
    return made if helper == "reset_norm" else syntax.add_keyword(made, "rngs", ctx.rngs(node))


def is_torchs(ctx: Context, func: cst.Attribute) -> bool:
    """Whether a method is that of one of torch's layers, or of a class that inherits it."""
    kind = ctx.kind(func.value)
    if not isinstance(kind, k.Module) or not kind.cls or k.is_any_module(kind):
        return False
    own = ctx.class_of(kind)
    if own is not None:
        return own.method(func.attr.value) is None and own.attribute(func.attr.value) is None
    return all(name.startswith("torch.nn.") for name in kind.cls.split("|"))


_RECURRENT = frozenset(
    f"torch.nn.{kind}{cell}" for kind in ("RNN", "GRU", "LSTM") for cell in ("", "Cell")
)


def _layers(ctx: Context, node: cst.BaseExpression) -> list[str]:
    kind = ctx.kind(node)
    own = ctx.class_of(kind)
    if own is not None:
        return [own.torch_base or ""]
    return kind.cls.split("|") if isinstance(kind, k.Module) else []


def _helper(layers: list[str]) -> str | None:
    if all(name.startswith(_WEIGHTED) for name in layers):
        return "reset_weights"
    if all(name == "torch.nn.Bilinear" for name in layers):
        return "reset_bilinear"
    if all(name == "torch.nn.Embedding" for name in layers):
        return "reset_embedding"
    if all(name in _RECURRENT for name in layers):
        return "reset_recurrent"
    return "reset_norm" if all(name.startswith(_NORMS) for name in layers) else None
