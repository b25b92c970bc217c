"""``hasattr(self.fc, "weight")``, ``getattr(norm, "bias", None)``, ``isinstance(w, nn.Parameter)``: asked of layers.

Flax calls some of what layers have otherwise, or does not keep it, and reads a parameter as an array. What torch's layers
have is known by their class; the attributes that a program gives them are looked up in the output.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import holds_tensor
from migrator.convert.context import Context, Failure
from migrator.convert.exact import is_exact
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.source import dotted
from rules import definitions
from rules.definitions import module_file
from rules.torch_names import has


@converts(cst.Call, called=("builtins.hasattr",))
def has_attribute(rw: Rewriter, node: cst.Call) -> Any:
    """``hasattr(self.fc, "weight")`` → True, whatever Flax calls it."""
    if rw.ctx.facts.callee(node) != "builtins.hasattr" or len(node.args) != 2:
        return None
    known = _known(rw.ctx, node)
    if known is None and isinstance(rw.ctx.kind(node.args[0].value), k.Module):
        known = has("torch.nn.Module", _name(rw.ctx, node)) or None  # what every module has
    return None if known is None else cst.Name(str(known))


@converts(cst.Call, called=("builtins.callable",))
def is_callable(rw: Rewriter, node: cst.Call) -> cst.Name | None:
    """``callable(getattr(self.layers, "forward", None))`` → True, as every module of torch's is and has it."""
    if rw.ctx.facts.callee(node) != "builtins.callable" or len(node.args) != 1:
        return None
    asked = node.args[0].value
    if isinstance(asked, cst.Attribute) and asked.attr.value == "forward":
        asked = asked.value
    elif isinstance(asked, cst.Call) and rw.ctx.facts.callee(asked) == "builtins.getattr":
        if len(asked.args) > 1 and rw.ctx.kind(asked.args[1].value) == k.Const("forward"):
            asked = asked.args[0].value
    return cst.Name("True") if isinstance(rw.ctx.kind(asked), k.Module) else None


@converts(cst.Comparison)
def is_there(rw: Rewriter, node: cst.Comparison) -> Any:
    """``getattr(self.norm, "weight", None) is not None`` → ``self.norm.scale is not None``."""
    left = node.left
    if not isinstance(left, cst.Call) or len(left.args) != 3:
        return None
    if rw.ctx.facts.callee(left) != "builtins.getattr" or not _known(rw.ctx, left):
        return None
    asked = syntax.changed(node, left=_attribute(rw.ctx, left))
    rw.ctx.facts.kinds[asked] = rw.ctx.facts.kind(node)
    return rw.visit(asked)


@converts(cst.Call, called=("builtins.getattr",))
def attribute_or(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(self.fc, "weight", None)`` → what ``self.fc.weight`` becomes, or the default."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.getattr" or len(node.args) != 3:
        return None
    known = _known(ctx, node)
    if known is None:
        return None
    if not known:
        return rw.visit(node.args[2].value)
    return rw.visit(_attribute(ctx, node))


def _spells(ctx: Context) -> bool:
    return not _SPELLED.isdisjoint(ctx.words)


@converts(cst.Attribute, when=_spells)
def through_a_wrapper(rw: Rewriter, node: cst.Attribute) -> None:
    """``self.wrapped.weight`` of a class that looks up in ``__getattr__`` what it has not.

    Raises:
      Failure: what it looks in may be a layer of torch's, which has that under another name in Flax.
    """
    name = node.attr.value
    if name not in _SPELLED or rw.ctx.is_self(node.value):
        return
    kind = rw.ctx.kind(node.value)
    info = rw.ctx.class_of(kind)
    if isinstance(kind, k.Unknown):  # one of them perhaps
        every = rw.ctx.facts.classes.values()
        info = next((c for c in every if c.torch_base and "__getattr__" in c.methods), None)
    if info is None or info.method("__getattr__") is None:
        return
    if info.attribute(name) is None and info.method(name) is None:
        what = f"{info.short} looks `{name}` up in another object, perhaps a layer that has it by another name in Flax"
        raise Failure(node, "API005", what, "ask that object itself")


_SPELLED: frozenset[str] = frozenset(
    "weight running_mean running_var num_batches_tracked in_channels out_channels num_features normalized_shape "
    "num_embeddings embedding_dim stride eps".split()
)
"""What layers of torch call otherwise than those of Flax."""


def _known(ctx: Context, node: cst.Call) -> bool | None:
    """Whether a layer has what is asked for; None where the output has to be asked."""
    name = _name(ctx, node)
    kind = ctx.kind(node.args[0].value)
    layer = kind.cls if isinstance(kind, k.Module) else ""
    info = ctx.facts.classes.get(layer)
    if info is not None:
        if info.torch_base in (None, "torch.nn.Module") or info.settled is not None:
            return None
        if info.attribute(name) is not None or info.method(name) is not None:
            return None
        layer = info.torch_base or ""
    answers = {has(one, name) for one in layer.split("|")}
    if not name or len(answers) != 1 or layer in ("", "torch.nn.Module"):
        return None
    (answer,) = answers
    if answer is None:
        return None
    if answer:
        return None if name in _BY_OPTION else True
    known = layer not in _CONTAINING and is_exact(ctx, node.args[0].value)
    return False if known and not _is_given(ctx, name) else None


def _attribute(ctx: Context, node: cst.Call) -> cst.Attribute:
    """``x.name`` for ``getattr(x, "name", default)``."""
    name = cst.Name(_name(ctx, node))
    found = cst.Attribute(node.args[0].value, name, lpar=node.lpar, rpar=node.rpar)
    ctx.facts.kinds[found] = ctx.facts.kind(node)
    return found


def _name(ctx: Context, node: cst.Call) -> str:
    told = node.args[1].value
    return str(told.evaluated_value) if isinstance(told, cst.SimpleString) else ""


def _is_given(ctx: Context, name: str) -> bool:
    """Whether the file may give an attribute of that name to something, by itself or by a name that it computes."""
    tree = ctx.facts.tree
    for node in tree.of_type(cst.AssignTarget, cst.AnnAssign, cst.AugAssign):
        if isinstance(node.target, cst.Attribute) and node.target.attr.value == name:
            return True
    return not _GIVING.isdisjoint(ctx.words)


_GIVING = frozenset(
    "setattr __dict__ vars register_buffer register_parameter register_module add_module parametrizations "
    "parametrize register_parametrization weight_norm spectral_norm prune".split()
)
_BY_OPTION = frozenset({"running_mean", "running_var", "num_batches_tracked"})
"""What a layer of torch's has as None where it keeps no statistics."""
_CONTAINING = frozenset(
    f"torch.nn.{name}"
    for name in "Sequential ModuleList ModuleDict ParameterList ParameterDict Module".split()
)


@converts(cst.Call, called=("builtins.isinstance",))
def is_parameter(rw: Rewriter, node: cst.Call) -> Any:
    """``isinstance(self.w, nn.Parameter)``: the output reads it as an array.

    Raises:
      Failure: an argument may be one or not.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.isinstance" or len(node.args) != 2:
        return None
    value, asked = (arg.value for arg in node.args)
    if ctx.facts.qualified_name(asked) not in _PARAMETER:
        return None
    kind = ctx.kind(value)
    whole = kind.inner if isinstance(kind, k.Optional) else kind
    if not isinstance(whole, k.Tensor):
        return None
    if isinstance(value, cst.Attribute):
        if whole.role != "param":
            return cst.Name("False") if whole.role else None
        if not isinstance(kind, k.Optional):
            return cst.Name("True")
        none = cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))
        there = cst.Comparison(value, [none])
        ctx.facts.kinds[there] = k.BOOL
        return syntax.parenthesized(rw.visit(there))
    if isinstance(value, cst.Name) and _is_argument(ctx, value.value):
        raise Failure(
            node,
            "API005",
            f"`{value.value}` is an array in the output, be it a parameter or not",
            "hand over as another argument whether it is one",
        )
    return None


_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


def _is_argument(ctx: Context, name: str) -> bool:
    """Whether a function that runs outside of constructors takes an argument of that name."""
    frame = ctx.frame
    if frame is None or ctx.in_init or ctx.plan.builds_time(frame.info):
        return False
    return name in syntax.parameters(frame.info.node)


@converts(cst.Call, called=("builtins.getattr",))
def computed_attribute(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(self.fc, name)``: Flax calls the weight of some layers otherwise.

    Raises:
      Failure: what is found may be written to.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.getattr" or len(node.args) not in (2, 3):
        return None
    if isinstance(ctx.kind(node.args[1].value), k.Const) or not _renames(ctx, node.args[0].value):
        return None
    frame = ctx.frame
    if len(node.args) == 3 or frame is None or ctx.in_init or ctx.plan.builds_time(frame.info):
        what = "an attribute of a layer is asked for by a name that only a run tells, which may be another in Flax"
        raise Failure(node, "API005", what, "write out the attributes that are meant")
    name = ctx.helpers.need(module_file("rules.compat.initialize"), "attribute_of")
    return syntax.changed(node, func=cst.Name(name), args=[rw.visit(a) for a in node.args])


def _renames(ctx: Context, layer: cst.BaseExpression) -> bool:
    """Whether a layer of torch's may have a weight that Flax calls otherwise."""
    kind = ctx.kind(layer)
    classes = kind.cls.split("|") if isinstance(kind, k.Module) else []
    rules = (rule for one in classes for rule in definitions.layers(one))
    return any(rule.weights.get("weight", "weight") != "weight" for rule in rules)


@converts(cst.Name, when=lambda ctx: {"getattr", "reduce"} <= ctx.words)
def attribute_by_path(rw: Rewriter, node: cst.Name) -> Any:
    """``reduce(getattr, path.split("."), self)`` where a forward pass reads what it finds."""
    ctx = rw.ctx
    if node.value != "getattr" or not ctx.facts.tree.has(node):
        return None
    match ctx.facts.tree.around(node):
        case [*_, cst.Call() as call, cst.Arg() as arg] if arg is call.args[0]:
            frame = ctx.frame
            func = (dotted(call.func) or "").removeprefix("functools.")
            if func != "reduce" or frame is None or ctx.in_init:
                return None
            if ctx.plan.builds_time(frame.info):
                return None
            helper = ctx.helpers.need(module_file("rules.compat.initialize"), "attribute_of")
            return cst.Name(helper)
    return None


@converts(cst.Call, called=("torch.nn.Linear",))
def without_bias(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.Linear(4, 2, bias=None)``: None counts as False in torch, Flax compares it with False."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "torch.nn.Linear" or any(a.star for a in node.args):
        return None
    named = [a for a in node.args if a.keyword is not None and a.keyword.value == "bias"]
    plain = [a for a in node.args if a.keyword is None]
    given = next(iter(named or plain[2:3]), None)
    if given is None:
        return None
    kind = ctx.kind(given.value)
    looked_up = isinstance(given.value, cst.Call) and isinstance(kind, k.Unknown)
    may_be = kind == k.NONE or isinstance(kind, k.Optional) or looked_up
    if not may_be and not _is_none_by_default(ctx, given.value):
        return None
    value: cst.BaseExpression = cst.Name("False")
    if kind != k.NONE or not isinstance(given.value, cst.Name) or given.value.value != "None":
        value = cst.Call(cst.Name("bool"), [cst.Arg(given.value)])
    args = [syntax.changed(a, value=value) if a is given else a for a in node.args]
    made = syntax.changed(node, args=args)
    ctx.facts.kinds[made] = ctx.facts.kind(node)
    ctx.facts.kinds[value] = k.BOOL
    return rw.visit(made)


def _is_none_by_default(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an argument of the function around a place is None unless it is given."""
    if ctx.frame is None or not isinstance(node, cst.Name):
        return False
    param = syntax.parameters(ctx.frame.info.node).get(node.value)
    default = param.default if param is not None else None
    return isinstance(default, cst.Name) and default.value == "None"


@converts(cst.Call, called=("builtins.isinstance",))
def is_list(rw: Rewriter, node: cst.Call) -> Any:
    """``isinstance(self.tables, dict)`` of what holds arrays, which Flax keeps in containers of its own."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.isinstance" or len(node.args) != 2:
        return None
    value, asked = (arg.value for arg in node.args)
    kind = ctx.kind(value)
    if not isinstance(value, cst.Attribute) or not holds_tensor(kind):
        return None
    match kind:
        case k.Sequence(type=held):
            pass
        case k.Tuple():
            held = "tuple"
        case k.Mapping():
            held = "dict"
        case _:
            return None
    wanted = [e.value for e in asked.elements] if isinstance(asked, cst.Tuple) else [asked]
    names = {ctx.facts.qualified_name(one) or syntax.code(one) for one in wanted}
    names = {name.removeprefix("builtins.") for name in names}
    if held not in _CONTAINERS or not names <= _CONTAINERS:
        return None
    return cst.Name(str(held in names))


_CONTAINERS = frozenset({"list", "tuple", "dict", "set"})
