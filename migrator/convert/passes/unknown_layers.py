"""``m.weight`` of a layer whose class only a run tells: ``def init_weights(m)``."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.exact import is_exact
from migrator.convert.passes import targets
from migrator.convert.passes.unregistered import made_by_heirs
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.torch_names import has


@converts(cst.Attribute, named=("weight",))
def weight_of_some_layer(rw: Rewriter, node: cst.Attribute) -> Any:
    """``m.weight`` where only a run tells what layer ``m`` is."""
    ctx = rw.ctx
    if node.attr.value != "weight":
        return None
    if not _is_asked_for_its_shape(rw, node):
        if ctx.frame is None or targets.found_at_run_time(ctx, node) is None:
            return None
        if ctx.in_init and not _is_value(ctx, node):
            return None
        if isinstance(ctx.kind(node.value), k.Unknown) and not made_by_heirs(ctx, node.value):
            return None
        written = (cst.AssignTarget, cst.AugAssign, cst.Assign, cst.Comparison, cst.Del)
        parent = ctx.facts.tree.around(node)[-1]
        if isinstance(parent, written) and not _is_asked_for_none(parent):
            return None
    name = ctx.helpers.need(module_file("rules.compat.initialize"), "weight_of")
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node.value))])


def _is_value(ctx: Context, node: cst.Attribute) -> bool:
    """Whether a constructor asks for the value of a weight, and does not keep the parameter itself."""
    if not k.is_any_module(ctx.kind(node.value)):
        return False
    *_, outer, parent = [None, *ctx.facts.tree.around(node)]
    if isinstance(parent, cst.Arg) and isinstance(outer, cst.Call):
        name = ctx.facts.callee(outer) or ""
        return name.startswith(("torch.", "Tensor.")) and not name.startswith("torch.nn.")
    return isinstance(parent, cst.Attribute)


def _is_asked_for_none(node: cst.CSTNode) -> bool:
    """``m.weight is not None``, of which Flax's layers may have none by that name."""
    return isinstance(node, cst.Comparison) and all(
        isinstance(one.comparator, cst.Name) and one.comparator.value == "None"
        for one in node.comparisons
    )


@converts(cst.Attribute, named=("data",))
def data_of_some_layer(rw: Rewriter, node: cst.Attribute) -> Any:
    """``m.weight.data`` where only a run tells what layer ``m`` is."""
    ctx = rw.ctx
    if node.attr.value != "data":
        return None
    held = targets.found_at_run_time(ctx, node.value)
    if held is None or not k.is_any_module(ctx.kind(held.value)):
        return None
    made = rw.visit(held)
    return made if isinstance(made, cst.Call) else targets.dereferenced(made)


_WALKING = frozenset("apply modules named_modules children named_children".split())
"""What hands layers to functions that may say nothing of what they are given."""


@converts(cst.Call, when=lambda ctx: "hasattr" in ctx.words)
def has_weight(rw: Rewriter, node: cst.Call) -> Any:
    """``hasattr(m, "weight")`` where only a run tells what layer ``m`` is: Flax calls the weight otherwise in some."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.hasattr" or len(node.args) != 2:
        return None
    layer, name = (arg.value for arg in node.args)
    if not isinstance(name, cst.SimpleString) or name.evaluated_value != "weight":
        return None
    asked = k.is_unknown_module if not ctx.words.isdisjoint(_WALKING) else k.is_any_module
    if not asked(ctx.kind(layer)):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.initialize"), "has_weight")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(layer))])


def _is_asked_for_its_shape(rw: Rewriter, node: cst.Attribute) -> bool:
    """``self.encoder.fc[0].weight.shape`` or ``.dtype`` with nothing known of the encoder: Flax may keep it transposed."""
    item = isinstance(node.value, cst.Subscript) and isinstance(node.value.value, cst.Attribute)
    if not (item or isinstance(node.value, cst.Attribute)) or rw.ctx.frame is None:
        return False
    if not k.is_unknown_module(rw.ctx.kind(node.value)) or rw.ctx.kind(node) != k.UNKNOWN:
        return False
    parent = rw.ctx.facts.tree.around(node)[-1]
    return isinstance(parent, cst.Attribute) and parent.attr.value in ("shape", "dtype")


_OTHERWISE = re.compile(
    r"""["'](?:Embeddi\w*|Module(?:List|Dict)|Sequential|LayerNorm|RMSNorm|Conv[123]d|Identity|Flatten|"""
    r"""[RSPGC]?R?e?(?:LU|ELU)6?|LeakyReLU|SiLU|Mish|Tanh|Sigmoid|Soft\w+|Hard\w+|LogS\w+|Tanhshrink)["']"""
)
"""A text that may be the name of a class of torch, which may be called otherwise in the output."""


@converts(cst.Attribute, named=("__name__",))
def name_of_class(rw: Rewriter, node: cst.Attribute) -> Any:
    """``m.__class__.__name__ == "Embedding"``, ``type(m).__name__``: Flax calls that class Embed."""
    ctx, held = rw.ctx, node.value
    if node.attr.value != "__name__":
        return None
    if isinstance(held, cst.Attribute) and held.attr.value == "__class__":
        layer = held.value
    elif isinstance(held, cst.Call) and len(held.args) == 1 and syntax.code(held.func) == "type":
        layer = held.args[0].value
    else:
        return None
    kind = ctx.kind(layer)
    torchs = isinstance(kind, k.Module) and bool(has(kind.cls.partition("|")[0], "forward"))
    if torchs and is_exact(ctx, layer):
        return cst.SimpleString(f'"{kind.cls.rpartition(".")[2]}"')  # type: ignore[attr-defined]
    if not (torchs or k.is_any_module(kind)) or not _OTHERWISE.search(ctx.source.text):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.initialize"), "class_name")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(layer))])
