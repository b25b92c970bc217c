"""What torch keeps apart and Flax does not: names that its layers use themselves, modules hidden from their parent,
constructors of several bases, and arrays as members of sets."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.supers import leaves_out, left_out
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.source import dotted
from rules.torch_names import has

_COMMON = frozenset("dtype param_dtype bias_init promote_dtype use_bias".split())
_NORMS = _COMMON | frozenset(
    "scale num_features epsilon use_scale scale_init reduction_axes feature_axes axis_name axis_index_groups "
    "use_fast_variance".split()
)
FLAX_NAMES = {
    "torch.nn.Linear": _COMMON
    | frozenset("kernel precision kernel_init dot_general preferred_element_type".split()),
    "torch.nn.LayerNorm": _NORMS,
    "torch.nn.RMSNorm": _NORMS,
    "torch.nn.Embedding": _COMMON | frozenset("embedding embedding_init".split()),
    "torch.nn.Dropout": frozenset("rate broadcast_dims deterministic rng_collection rngs".split()),
}
"""Attributes of Flax's own that what becomes of a layer has."""


@converts(cst.Assign, targets=(cst.Attribute,))
def taken_name(rw: Rewriter, node: cst.Assign) -> None:
    """``self.scale = 3.0`` in a class derived from LayerNorm, ``self.norm.scale = 3.0``.

    Raises:
      Failure: Flax's layer goes by an attribute of that name.
    """
    ctx = rw.ctx
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Attribute):
            continue
        layer = _layer(ctx, target.value)
        name = target.attr.value
        usual = name == "dtype" and rw.ctx.kind(node.value) == k.DType("float32")
        if name in FLAX_NAMES.get(layer, ()) and not usual and not has(layer, name):
            raise _taken(node, name, layer)


@converts(cst.ClassDef)
def taken_in_class(rw: Rewriter, node: cst.ClassDef) -> None:
    """``scale = 3.0`` and ``def scale(self)`` in the body of a class derived from LayerNorm.

    Raises:
      Failure: as above.
    """
    info = _info(rw.ctx, node)
    layer = (info.torch_base if info is not None else None) or ""
    for line in node.body.body if layer in FLAX_NAMES else ():
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
        names = [line.name] if isinstance(line, cst.FunctionDef) else syntax.assigned_to(small)
        for one in names:
            if isinstance(one, cst.Name) and one.value in FLAX_NAMES[layer]:
                if not has(layer, one.value):
                    raise _taken(small, one.value, layer)


@converts(cst.ClassDef)
def without_constructor(rw: Rewriter, node: cst.ClassDef) -> None:
    """``class Net(Mixin, Base)`` whose constructor is Mixin's, and by its super() Base's as well."""
    info = _info(rw.ctx, node)
    if info is None or not info.torch_base or "__init__" in info.methods:
        return
    parents = [p for p in info.parents if p.torch_base]
    if leaves_out(rw.ctx, parents):
        raise left_out(node, parents)


def _info(ctx: Context, node: cst.ClassDef) -> ClassInfo | None:
    return next((one for one in ctx.facts.classes.values() if one.node is node), None)


def _taken(node: cst.CSTNode, name: str, layer: str) -> Failure:
    what = f"`{name}` is an attribute of its own of what {layer} becomes in Flax"
    return Failure(node, "API005", what, "give the attribute another name")


def _layer(ctx: Context, node: cst.BaseExpression) -> str:
    """The layer of torch's that something is or derives from."""
    owner = ctx.owner if ctx.is_self(node) else ctx.class_of(ctx.kind(node))
    if owner is not None:
        return owner.torch_base or ""
    kind = ctx.kind(node)
    return kind.cls if isinstance(kind, k.Module) else ""


@converts(cst.Assign)
def hidden_by_dict(rw: Rewriter, node: cst.Assign) -> None:
    """``self.__dict__["teacher"] = net``.

    Raises:
      Failure: torch does not register what is put there, Flax finds it all the same.
    """
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Subscript) or not isinstance(target.value, cst.Attribute):
            continue
        held = target.value
        if held.attr.value == "__dict__" and _is_module(rw.ctx, held.value):
            if _is_data(rw.ctx, node.value):
                raise _hidden(node)


@converts(cst.Call, named=("__setattr__",))
def hidden_by_object(rw: Rewriter, node: cst.Call) -> None:
    """``object.__setattr__(self, "teacher", net)``.

    Raises:
      Failure: as for ``self.__dict__``.
    """
    if dotted(node.func) != "object.__setattr__" or len(node.args) != 3:
        return
    if _is_module(rw.ctx, node.args[0].value) and _is_data(rw.ctx, node.args[2].value):
        raise _hidden(node)


def _is_module(ctx: Context, node: cst.BaseExpression) -> bool:
    info = ctx.owner if ctx.is_self(node) else ctx.class_of(ctx.kind(node))
    return info is not None and info.torch_base is not None


def _is_data(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(inner, (k.Module, k.Tensor))


def _hidden(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API008",
        "torch does not register what is hidden so; Flax finds modules and arrays wherever they are kept",
        "hand it to forward() as an argument",
    )


@converts(cst.Comparison)
def among_devices(rw: Rewriter, node: cst.Comparison) -> None:
    """``x.device in [torch.device("cpu")]``.

    Raises:
      Failure: arrays have no device in the output, which is none of any.
    """
    among = all(isinstance(one.operator, (cst.In, cst.NotIn)) for one in node.comparisons)
    if among and isinstance(rw.ctx.kind(node.left), k.Device):
        what = "a device is looked for among others, and JAX places arrays by itself"
        raise Failure(node, "API005", what, "write down the branch that is meant")


@converts(cst.Set, cst.Dict, cst.SetComp, cst.DictComp, cst.Call)
def hashed(rw: Rewriter, node: Any) -> None:
    """``{x, y}``, ``{x: "a"}``, ``set(net.parameters())``, ``seen.add(x)``: tensors go by their identity there.

    Raises:
      Failure: arrays and parameters cannot be members or keys.
    """
    ctx = rw.ctx
    held: list[cst.BaseExpression] = []
    if isinstance(node, cst.Set):
        held = [one.value for one in node.elements if isinstance(one, cst.Element)]
    elif isinstance(node, (cst.SetComp, cst.DictComp)):
        member = node.elt if isinstance(node, cst.SetComp) else node.key
        held = [member] if isinstance(member, (cst.Name, cst.Attribute)) else []
    elif isinstance(node, cst.Dict):
        held = [one.key for one in node.elements if isinstance(one, cst.DictElement)]
    elif len(node.args) == 1 and dotted(node.func) in ("set", "frozenset"):
        if isinstance(k.element(ctx.kind(node.args[0].value)), k.Tensor):
            raise _unhashable(node)
    elif len(node.args) == 1 and isinstance(node.func, cst.Attribute):
        receiver = ctx.kind(node.func.value)
        if node.func.attr.value == "add" and receiver == k.Other("set"):
            held = [node.args[0].value]
    if any(isinstance(ctx.kind(one), k.Tensor) for one in held):
        raise _unhashable(node)


def _unhashable(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API005",
        "tensors are told apart by their identity here, which arrays have not",
        "go by their names, or by `id()` of what holds them",
    )
