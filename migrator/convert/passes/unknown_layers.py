"""``m.weight`` of a layer whose class only a run tells: ``def init_weights(m)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.unregistered import made_by_heirs
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.source import dotted
from rules.definitions import module_file


@converts(cst.Attribute, named=("weight",))
def weight_of_some_layer(rw: Rewriter, node: cst.Attribute) -> Any:
    """``m.weight`` where only a run tells what layer ``m`` is."""
    ctx = rw.ctx
    if node.attr.value != "weight":
        return None
    if _asks_of_parameter(ctx, node):
        what = "a parameter of a layer of an unknown class is asked for: Flax may call it otherwise"
        raise Failure(node, "API006", what, "annotate the argument with its class")
    if not _is_asked_for_its_shape(rw, node) and not _is_read_of_argument(ctx, node):
        if _is_kept(ctx, node):
            raise Failure(
                node,
                "API006",
                "the weight of a layer of an unknown class is kept itself: Flax may call it otherwise, and lay it out otherwise",
                "annotate the argument with its class, or keep a copy: `.weight.detach().clone()`",
            )
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


def _is_read_of_argument(ctx: Context, node: cst.Attribute) -> bool:
    """Whether a function reads ``m.weight`` as a value, where nothing says what its argument ``m`` is."""
    return is_of_argument(ctx, node) and ctx.facts.tree.has(node) and _reads(ctx, node)


def _is_kept(ctx: Context, node: cst.Attribute) -> bool:
    """Whether a constructor keeps the parameter of something it is given, or hands it on: ``self.w = other.fc.weight``."""
    if not ctx.in_init or not ctx.facts.tree.has(node) or not is_of_argument(ctx, node):
        return False
    root: cst.BaseExpression = node
    while isinstance(root, (cst.Attribute, cst.Subscript)):
        root = root.value
    if isinstance(root, cst.Name) and root.value.lower().endswith(_OF_SETTINGS):
        return False
    above, parent = [None, *ctx.facts.tree.around(node)][-2:]
    if isinstance(parent, cst.Attribute) and parent.attr.value == "data" and parent.value is node:
        node = parent
        above, parent = [None, *ctx.facts.tree.around(node)][-2:]
    if isinstance(parent, cst.Arg) and isinstance(above, cst.Call):
        name, func = ctx.facts.callee(above) or "", above.func
        if isinstance(func, cst.Attribute) and func.attr.value in _KEEPING:
            return True
        return name in _MAKING or name in ctx.facts.names or name in ctx.facts.classes
    return isinstance(parent, (cst.Assign, cst.AnnAssign, cst.Element, cst.DictElement))


_KEEPING = frozenset("append insert register_parameter register_buffer".split())


def is_of_argument(ctx: Context, node: cst.CSTNode) -> bool:
    """``m.weight`` of an argument or a local name, ``self.layer.weight`` of what a module was handed: nothing is known.

    A function of another file may hand over a layer. Whatever else it is, the helper gives what it calls its weight.
    """
    if not isinstance(node, cst.Attribute) or node.attr.value != "weight":
        return False
    held, root = node.value, node.value
    while isinstance(root, (cst.Attribute, cst.Subscript)):
        held, root = root, root.value
    if not isinstance(root, cst.Name):
        return False
    if _is_of_lambda(ctx, root):
        unknown = isinstance(ctx.kind(node.value), k.Unknown) and isinstance(
            ctx.kind(node), k.Unknown
        )
        return unknown and root.value not in _SETTINGS
    if ctx.frame is None or ctx.frame.info.settled is not None:
        return False
    if not all(isinstance(ctx.kind(one), k.Unknown) for one in (node.value, node)):
        return False
    if isinstance(held, cst.Attribute) and ctx.is_self(root):
        return held.attr.value not in _SETTINGS
    known = root.value not in ctx.frame.locals or not isinstance(ctx.kind(root), k.Unknown)
    return not known and root.value not in _SETTINGS


def _is_of_lambda(ctx: Context, name: cst.Name) -> bool:
    """Whether a name is the argument of a lambda around it."""
    around = ctx.facts.tree.around(name) if ctx.facts.tree.has(name) else []
    lambdas = [one for one in around if isinstance(one, cst.Lambda)]
    return any(p.name.value == name.value for one in lambdas for p in one.params.params)


def _asks_of_parameter(ctx: Context, node: cst.Attribute) -> bool:
    """``m.weight.requires_grad``, ``isinstance(m.weight, nn.Parameter)`` of an argument: not of the value."""
    some = is_of_argument(ctx, node) or k.is_unknown_module(ctx.kind(node.value))
    if not some or not ctx.facts.tree.has(node):
        return False
    above, parent = [None, *ctx.facts.tree.around(node)][-2:]
    if isinstance(parent, cst.Attribute):
        return parent.attr.value == "requires_grad" and not isinstance(above, cst.AssignTarget)
    if not isinstance(parent, cst.Arg) or not isinstance(above, cst.Call):
        return False
    return ctx.facts.callee(above) == "builtins.isinstance" and above.args[0] is parent


_SETTINGS = frozenset("args cfg conf config hparams opt options opts params".split())
"""What settings are called, of which ``weight`` may be one."""
_OF_SETTINGS = ("args", "cfg", "config", "conf", "opt", "options", "params", "settings", "kwargs")
_OF_PARAMETERS = frozenset("data grad requires_grad requires_grad_ register_hook".split())
"""What is asked of a parameter, and not of its value."""


def _reads(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a parameter is read as a value: ``w.shape``, ``w * 2``, ``F.linear(x, w)``; by another name too."""
    above, parent = [None, *ctx.facts.tree.around(node)][-2:]
    if isinstance(parent, cst.Attribute):
        if parent.attr.value == "data":
            return _reads(ctx, parent)
        written = parent.attr.value.endswith("_") or parent.attr.value in _OF_PARAMETERS
        return parent.value is node and not written and not isinstance(above, cst.AssignTarget)
    if isinstance(parent, cst.Arg) and isinstance(above, cst.Call):
        name = ctx.facts.callee(above) or ""
        if name.startswith("Tensor."):
            return name not in _SHARING  # a method writes to what it is asked of alone
        reads = name.startswith("torch.") and "init." not in name
        return reads and not name.endswith("_") and name not in _MAKING
    if isinstance(parent, cst.Subscript):
        return parent.value is node and not isinstance(above, (cst.AssignTarget, cst.AugAssign))
    if isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
        if isinstance(target, cst.Subscript):
            return True  # into another tensor
        return isinstance(target, cst.Name) and _is_only_read(ctx, target)
    if isinstance(parent, cst.Return):
        return not ctx.in_init
    if isinstance(parent, cst.Element):
        return _is_read_in(ctx, node, above)
    if isinstance(parent, cst.IfExp) and parent.test is not node:
        return _reads(ctx, parent)
    if isinstance(parent, cst.Comparison):
        return not _is_asked_for_none(parent)
    return isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation, cst.ComparisonTarget))


def _is_read_in(ctx: Context, node: cst.BaseExpression, display: cst.CSTNode | None) -> bool:
    """``torch.cat([m.weight, m.bias])``, ``w, b = m.weight, m.bias`` whose names are read only."""
    if not isinstance(display, (cst.List, cst.Tuple)):
        return False
    parent = ctx.facts.tree.around(display)[-1]
    if not isinstance(parent, cst.Assign):
        return _reads(ctx, display)
    target = parent.targets[0].target
    if len(parent.targets) > 1 or not isinstance(target, (cst.Tuple, cst.List)):
        return False
    pairs = zip(target.elements, display.elements, strict=False)
    found = [one.value for one, given in pairs if given.value is node]
    return len(target.elements) == len(display.elements) and all(
        isinstance(one, cst.Name) and _is_only_read(ctx, one) for one in found
    )


def _is_only_read(ctx: Context, name: cst.Name) -> bool:
    """Whether a function reads what a local name holds, wherever else the name stands."""
    names = ctx.facts.tree.within(ctx.frame.info.node.body, cst.Name) if ctx.frame else ()
    return all(_reads(ctx, one) for one in names if one.value == name.value and one is not name)


_SHARING = frozenset({"Tensor.set_", "Tensor.register_hook"})
"""Methods that give a tensor the memory of another."""
_MAKING = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"})


def _is_value(ctx: Context, node: cst.Attribute) -> bool:
    """Whether a constructor asks for the value of a weight, and does not keep the parameter itself."""
    if not k.is_any_module(ctx.kind(node.value)):
        return False
    *_, outer, parent = [None, *ctx.facts.tree.around(node)]
    if isinstance(parent, cst.Arg) and isinstance(outer, cst.Call):
        name = ctx.facts.callee(outer) or ""
        return name.startswith(("torch.", "Tensor.")) and not name.startswith("torch.nn.")
    return isinstance(parent, (cst.Attribute, cst.BinaryOperation, cst.UnaryOperation))


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
    if held is None:
        return None
    weight = syntax.changed(held, attr=cst.Name("weight"))  # as is asked of a bias
    if not k.is_any_module(ctx.kind(held.value)):
        if not is_of_argument(ctx, weight) or not _reads(ctx, node):
            return None
    made = rw.visit(held)
    value = made if isinstance(made, cst.Call) else targets.dereferenced(made)
    if ctx.in_init or not _reads(ctx, node):
        return value
    ctx.helpers.use("lax")
    return syntax.with_args(cst.Call(syntax.parse("lax.stop_gradient")), [cst.Arg(value)])


@converts(cst.Call, called=("builtins.getattr",))
def weight_or(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(m, "weight", None)`` where only a run tells what layer ``m`` is.

    Raises:
      Failure: what is found may be written to, and it is a value here.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.getattr" or len(node.args) != 3:
        return None
    layer, name, default = (arg.value for arg in node.args)
    if not isinstance(name, cst.SimpleString) or name.evaluated_value != "weight":
        return None
    kind = ctx.kind(layer)
    unknown = isinstance(kind, k.Unknown) and not _is_settings(layer)
    if not (unknown or k.is_unknown_module(kind)):
        return None
    if not _reads_or_asks(ctx, node):
        if not k.is_any_module(kind):
            return None
        what = (
            "the weight of a layer of an unknown class is kept itself: Flax may call it otherwise"
        )
        raise Failure(node, "API006", what, "annotate the argument with its class")
    helper = ctx.helpers.need(module_file("rules.compat.initialize"), "weight_or")
    args = [cst.Arg(rw.visit(one)) for one in (layer, default)]
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


def _reads_or_asks(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a weight, or None, is read as a value, under a local name too."""
    if not ctx.facts.tree.has(node):
        return False
    parent = ctx.facts.tree.around(node)[-1]
    if _is_asked_for_none(parent) or _reads(ctx, node):
        return True
    target: cst.CSTNode | None = parent.target if isinstance(parent, cst.NamedExpr) else None
    if isinstance(parent, cst.Assign):
        target = parent.targets[0].target
    if not isinstance(target, cst.Name):
        return False
    body = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    names = ctx.facts.tree.within(body, cst.Name)
    others = [one for one in names if one.value == target.value and one is not target]
    around = [(one, ctx.facts.tree.around(one)[-1]) for one in others]
    return all(
        _is_asked_for_none(above) or isinstance(above, cst.NamedExpr) or _reads(ctx, one)
        for one, above in around
    )


def _is_settings(node: cst.BaseExpression) -> bool:
    name = (dotted(node) or "").rpartition(".")[2]
    return name in _SETTINGS or name.lower().endswith(_OF_SETTINGS)


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
    kind = ctx.kind(layer)
    if not asked(kind) and not (isinstance(kind, k.Unknown) and not _is_settings(layer)):
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
