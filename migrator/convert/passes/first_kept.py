"""What the forward pass keeps under an attribute that no constructor has made: ``self.attention = scores``.

Flax asks that such an attribute is declared as data. Under ``nnx.jit`` the module would hold what is only traced
otherwise, and its next call would fail.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import holds_tensor, levels
from migrator.convert.context import Context
from migrator.convert.own_state import property_of
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


def kept(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> Any:
    """``self.attention = nnx.data(scores)``; None where a constructor declares it, or where it holds no arrays."""
    value = _declared(rw, target, node.value)
    if value is None:
        return None
    from migrator.convert.passes.names import target_of

    named = [syntax.changed(one, target=target_of(rw, one.target)) for one in node.targets]
    return syntax.changed(node, targets=named, value=value)


def _declared(
    rw: Rewriter, target: cst.Attribute, value: cst.BaseExpression
) -> cst.BaseExpression | None:
    ctx = rw.ctx
    if not keeps(ctx, target):
        return None
    kind = ctx.facts.kind(value)
    if ctx.is_self(target.value) and ctx.owner is not None and syntax.code(value) in _EMPTY:
        kind = ctx.owner.attribute(target.attr.value) or kind  # what it gains later
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(inner, k.Tensor) or holds_tensor(inner):
        ctx.helpers.use("nnx")
        func: cst.BaseExpression = syntax.parse("nnx.data")
    elif _may_hold(inner, value):
        func = cst.Name(ctx.helpers.need(module_file("rules.compat.factories"), "kept"))
    else:
        return None
    made = rw.visit(value)
    if isinstance(made, cst.Tuple) and not made.lpar:
        made = syntax.parenthesized(made)
    return syntax.with_args(cst.Call(func), [cst.Arg(made)])


def _may_hold(kind: k.Kind, value: cst.BaseExpression) -> bool:
    """Whether only a run tells if a value holds arrays: of what a call gives, ``[x, y]`` of arguments."""
    if isinstance(value, _COMPUTED):
        return _says_nothing(kind)
    if not isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.DictComp)):
        return False
    return any(isinstance(part, k.Unknown) for part in levels(kind))


_COMPUTED = (
    cst.Call,
    cst.Name,
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.UnaryOperation,
    cst.Subscript,
    cst.IfExp,
)


_EMPTY = frozenset({"[]", "{}", "list()", "dict()"})


def keeps(ctx: Context, target: cst.Attribute) -> bool:
    """Whether an attribute of a module is made by its forward pass, or is None as its class of another file has it."""
    frame = ctx.frame
    if frame is not None and _is_none_elsewhere(ctx, target):
        return True
    if frame is None or ctx.in_init or ctx.plan.builds_time(frame.info):
        return False
    if property_of(ctx, target) is not None:
        return False  # it is the setter that assigns
    owner = ctx.owner if ctx.is_self(target.value) else ctx.class_of(ctx.kind(target.value))
    if owner is None:
        layer = isinstance(ctx.kind(target.value), k.Module)
        return layer and target.attr.value not in _OF_LAYERS
    return _is_new(ctx, owner, target.attr.value)


def _is_none_elsewhere(ctx: Context, target: cst.Attribute) -> bool:
    """``self.part.cache = x`` of a module of another file, in which nobody gives it anything."""
    owner, name = ctx.class_of(ctx.kind(target.value)), target.attr.value
    if owner is None or owner.settled is None or not owner.torch_base:
        return False
    if ctx.is_self(target.value) or property_of(ctx, target) is not None:
        return False
    family = [one for one in owner.lineage() if name in one.attributes]
    return bool(family) and all(
        name in one.unclear or one.attributes[name] in (k.NONE, k.UNKNOWN) for one in family
    )


def _is_new(ctx: Context, owner: ClassInfo, name: str) -> bool:
    others = [one for one in owner.lineage() if one.settled is not None]
    if owner.torch_base is None or any(_is_there(one, name) for one in others):
        return False  # a class of another file has seen to it
    return not _made_by_constructor(ctx, owner, name)


def _is_there(info: ClassInfo, name: str) -> bool:
    """Whether a class of another file has an attribute that may hold arrays: it has declared it."""
    return info.attributes.get(name, k.NONE) != k.NONE


_OF_LAYERS = frozenset({"weight", "bias", "data", "training", "running_mean", "running_var"})


def _made_by_constructor(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether a method that runs while modules are built assigns an attribute, or registers it."""
    known = owner.attribute(name)
    if isinstance(known, k.Tensor) and known.role:
        return True
    inner = known.inner if isinstance(known, k.Optional) else known
    family = [c for c in ctx.facts.classes.values() if owner in c.lineage() or c in owner.lineage()]
    for info in family:
        for method in info.methods.values():
            if not ctx.plan.builds_time(method):
                continue
            for node in ctx.facts.tree.within(method.node.body, cst.Assign, cst.AnnAssign):
                if _says_nothing(inner) and _is_empty(node.value):
                    continue  # which declares nothing, since only a run tells what comes later
                for to in syntax.assigned_to(node):
                    if isinstance(to, cst.Attribute) and to.attr.value == name:
                        return True
            if any(_names(one, name) for one in ctx.facts.tree.within(method.node.body, cst.Call)):
                return True
    return False


def _says_nothing(kind: k.Kind | None) -> bool:
    """Whether nothing is known of a value, or of what it holds."""
    return kind is not None and any(isinstance(part, k.Unknown) for part in levels(kind))


def _is_empty(value: cst.CSTNode | None) -> bool:
    """``None``, ``0``, and containers of nothing: ``[]``, ``()``, ``{}``."""
    bare = isinstance(value, (cst.List, cst.Tuple, cst.Dict)) and not value.elements
    return bare or is_constant(value)


def is_constant(value: cst.CSTNode | None) -> bool:
    """Whether a value is a number, a text, None or a truth that is written down."""
    return isinstance(value, (cst.BaseNumber, cst.SimpleString)) or (
        isinstance(value, cst.Name) and value.value in ("None", "True", "False")
    )


def _names(call: cst.Call, name: str) -> bool:
    """``self.register_buffer("mask", …)``, ``setattr(self, "mask", …)``, ``setattr(self, key, …)``."""
    func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    word = func.value if isinstance(func, cst.Name) else ""
    if word not in ("setattr", "register_buffer", "register_parameter", "add_module"):
        return False
    place = 1 if word == "setattr" else 0
    given = call.args[place].value if len(call.args) > place else None
    return not isinstance(given, cst.SimpleString) or given.evaluated_value == name


def with_declarations(rw: Rewriter, info: ClassInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    """``mean: jax.Array = nnx.data()`` in a class whose forward pass assigns it beside others: ``self.mean, y = h.chunk(2)``."""
    ctx = rw.ctx
    names: dict[str, None] = {}
    for method in info.methods.values():
        if method.short == "__init__" or ctx.plan.builds_time(method):
            continue
        for node in ctx.facts.tree.within(method.node.body, cst.Assign):
            parts = [part for one in node.targets for part in _parts(one.target)]
            if len(parts) < 2 or not _holds_arrays(ctx, node):
                continue
            for one in parts:
                if isinstance(one, cst.Attribute) and syntax.code(one.value) == "self":
                    if _is_new(ctx, info, one.attr.value):
                        names[one.attr.value] = None
    if not names or not isinstance(body, cst.IndentedBlock):
        return body
    ctx.helpers.use("nnx")
    lines = [declaration(ctx, name) for name in names]
    after = 1 if body.body and syntax.is_docstring(body.body[0]) else 0
    return syntax.changed(body, body=[*body.body[:after], *lines, *body.body[after:]])


def declaration(ctx: Context, name: str) -> cst.BaseStatement:
    """An attribute of the class as data; without a value where ``hasattr(self, "mean")`` may ask whether it is there."""
    if f'"{name}"' in ctx.source.text or f"'{name}'" in ctx.source.text:
        return syntax.statement(f"{name}: nnx.Data\n")
    ctx.helpers.use("jax")
    return syntax.statement(f"{name}: jax.Array = nnx.data()\n")


def _parts(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(target, (cst.Tuple, cst.List)):
        return [part for one in target.elements for part in _parts(one.value)]
    return [target]


def _holds_arrays(ctx: Context, node: cst.Assign) -> bool:
    kind = ctx.facts.kind(node.value)
    return isinstance(kind, k.Tensor) or holds_tensor(kind)
