"""Modules in attributes: children of a Sequential, plain lists, functions in place of layers."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import bound
from migrator.convert.children import is_named
from migrator.convert.context import Context, Failure
from migrator.convert.hints import is_no_module
from migrator.convert.passes.annotations import layer_class
from migrator.convert.passes.unregistered import (
    holds_layers_of_any_class,
    is_collected,
    is_made_as_child,
    is_registered,
)
from migrator.convert.passes.without_state import is_only_read, keeps_nothing
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file


def lists_modules(rw: Rewriter, target: cst.Attribute, kind: k.Kind | None) -> bool:
    """Whether an attribute of a module is a plain list of modules, also of such as nothing else is known of."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if not isinstance(kind, k.Sequence) or kind.type != "list" or not ctx.is_self(target.value):
        return False
    item = kind.item.inner if isinstance(kind.item, k.Optional) else kind.item
    if isinstance(item, k.Module):
        return True
    if owner is None or not owner.torch_base or not ctx.in_init:
        return False
    name = target.attr.value
    while isinstance(item, k.Sequence):
        item = item.item
    if isinstance(item, k.Unknown) and _is_filled_by_builders(ctx, owner, name):
        return True
    return isinstance(kind.item, k.Unknown) and holds_layers_of_any_class(ctx, owner, name)


def _is_filled_by_builders(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """``self.stacks.append(self.create_stack(n))``: what a function makes of which only that is known that it builds layers."""
    init = owner.methods.get("__init__")
    for call in ctx.facts.tree.within(init.node.body, cst.Call) if init is not None else ():
        info = ctx.facts.names.get(ctx.facts.callee(call) or "")
        if info is None or not info.builds or info.short == "__init__":
            continue
        around = list(ctx.facts.tree.around(call))
        into = next(
            (one for one in reversed(around) if isinstance(one, (cst.Call, cst.Assign))), None
        )
        if isinstance(into, cst.Call):
            func = into.func
            put = isinstance(func, cst.Attribute) and func.attr.value in (
                "append",
                "extend",
                "insert",
            )
            if put and syntax.is_own(func.value, name):  # type: ignore[attr-defined]
                return True
        elif into is not None and any(syntax.is_own(t.target, name) for t in into.targets):
            return True
    return False


def plain_list(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> cst.Assign:
    """A list of modules: one without names in the state_dict, where other attributes hold them as well."""
    ctx, owner = rw.ctx, rw.ctx.owner
    registered = owner is not None and (
        is_registered(ctx, owner, target.attr.value)
        or (
            is_only_read(ctx, target.attr.value)
            and (
                is_collected(ctx, owner, target.attr.value, node.value)
                or is_made_as_child(ctx, owner, node.value)
                or _holds_nothing(rw, node.value)
            )
        )
    )
    if not registered or not ctx.in_init:
        what = "a plain list registers no modules: torch trains and saves them only by other names"
        advice = "use nn.ModuleList if they are meant to be part of the model"
        raise Failure(node, "API008", what, advice)
    name = ctx.helpers.need(module_file("rules.compat.containers"), "Unregistered")
    value = cst.Call(cst.Name(name), [cst.Arg(rw.visit(node.value))])
    return syntax.changed(node, value=value)


def _holds_nothing(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a list is written out whose modules keep nothing that torch would train, save or switch."""
    if isinstance(value, cst.List):
        items = [element.value for element in value.elements]
    else:
        items = [value.elt] if isinstance(value, cst.ListComp) else []
    return bool(items) and all(keeps_nothing(rw.ctx, rw.ctx.kind(item)) for item in items)


_SEQUENTIAL = k.Class("torch.nn.Sequential")
_CONTAINERS = ("torch.nn.Sequential", "torch.nn.ModuleDict", "torch.nn.ModuleList")


def child_by_assignment(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> Any:
    """``self.conv = nn.Conv2d(…)`` in a Sequential: its next child; None when no module is assigned."""
    ctx = rw.ctx
    kind = ctx.kind(node.value)
    if target.attr.value == "layers":
        what = "`layers` of nnx.Sequential are its children"
        raise Failure(node, "API007", what, "give the attribute another name")
    if not isinstance(kind, (k.Module, k.Unknown)) or not ctx.in_init:
        return None
    if isinstance(kind, k.Unknown) and (is_no_module(ctx, node.value) or _comes_first(ctx, node)):
        return None
    known = isinstance(kind, k.Module) and not isinstance(ctx.facts.kind(node.value), k.Optional)
    owner = ctx.owner
    roots = [c for c in owner.lineage() if _SEQUENTIAL in c.bases] if owner is not None else []
    named = any(is_named(ctx, c) for c in roots)
    if not known or not named or not ctx.is_self(target.value):
        raise Failure(
            node,
            "API007",
            "it is not known whether a Sequential gains a child by this assignment",
            "hand its layers to super().__init__()",
        )
    name = cst.SimpleString(f'"{target.attr.value}"')
    func = cst.Attribute(target.value, cst.Name("add_module"))
    return cst.Expr(
        syntax.with_args(cst.Call(func), [cst.Arg(name), cst.Arg(rw.visit(node.value))])
    )


def check_child(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> None:
    """Raise a Failure for ``self.net.extra = nn.Linear(2, 2)`` of a Sequential, which runs it from then on."""
    ctx = rw.ctx
    held = ctx.kind(target.value)
    if not isinstance(held, k.Module) or held.cls not in _CONTAINERS:
        return
    name = target.attr.value
    if not isinstance(ctx.kind(node.value), k.Module) or name in dict(held.args):
        return
    text = re.sub(rf"""setattr\([^()]*["']{name}["']""", "", ctx.source.text)  # says it itself
    if re.search(rf"""["']{name}["']|[(,]\s*{name}\s*=""", text):
        return  # the name of a layer that it may have
    what = f"`{name}` may become a further layer of a {held.cls.removeprefix('torch.nn.')}"
    advice = "add it with `add_module`, or replace the one there by its number"
    if held.cls != "torch.nn.Sequential":
        advice = "add it as the container's own methods do"
    raise Failure(node, "API007", what, advice)


def check_hidden(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> None:
    """Raise a Failure for a layer under a name of which the class has something already.

    torch's ``Module.__setattr__`` puts a module into a table of its own, which is asked only where nothing else has the
    name: ``self.act`` goes on being what the class says.
    """
    ctx, name = rw.ctx, target.attr.value
    held = ctx.kind(target.value)
    owner = ctx.owner if ctx.is_self(target.value) else None
    if owner is None and isinstance(held, k.Module):
        owner = ctx.facts.classes.get(held.cls)
    if owner is None or owner.torch_base is None:
        return
    if not isinstance(ctx.kind(node.value), k.Module) and not _may_be_layer(ctx, node, name):
        return
    classes = [c for c in ctx.facts.classes.values() if name in c.methods or name in c.statics]
    for one in classes:
        if one not in owner.lineage() and owner not in one.lineage():
            continue  # neither what it derives from, nor what derives from it
        hidden = name in one.methods and "property" not in one.methods[name].decorators
        if one.settled is None and (hidden or (name in one.statics and _says_what(one, name))):
            what = (
                f"`{name}` is read from the class {one.short}, also after a layer is assigned to it"
            )
            raise Failure(node, "API007", what, "give one of the two another name")


def _may_be_layer(ctx: Context, node: cst.Assign, name: str) -> bool:
    """Whether nothing is known of what is assigned, and it is called under its name, as layers and functions are."""
    if not isinstance(ctx.kind(node.value), k.Unknown) or is_no_module(ctx, node.value):
        return False
    calls = (one.func for one in ctx.source.index.of_type(cst.Call))
    return any(isinstance(one, cst.Attribute) and one.attr.value == name for one in calls)


def _says_what(info: ClassInfo, name: str) -> bool:
    """Whether the body of a class gives a name a value (an annotation alone gives none)."""
    for line in info.node.body.body:
        for one in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if any(name in set(bound(target)) for target in syntax.assigned_to(one)):
                return True
    return False


def _comes_first(ctx: Context, node: cst.Assign) -> bool:
    """Whether a constructor assigns before it calls ``super().__init__()``, where torch takes no module."""
    if ctx.frame is None or not ctx.facts.tree.has(node):
        return False
    for one in ctx.facts.tree.within(ctx.frame.info.node.body, cst.Assign, cst.Call):
        if one is node:
            return True
        func = one.func if isinstance(one, cst.Call) else None
        if isinstance(func, cst.Attribute) and func.attr.value == "__init__":
            return False
    return False


def replaces_by_function(rw: Rewriter, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    """``net.fc = nn.Identity()``: a layer that is a plain function takes the place of one that may hold arrays."""
    ctx = rw.ctx
    kind = ctx.facts.kind(value.func) if isinstance(value, cst.Call) else None
    if not isinstance(kind, k.Class) or not kind.name.startswith("torch.nn."):
        return False
    if ctx.traverses or not definitions.layers(kind.name) or layer_class(rw, kind.name) is not None:
        return False
    if not ctx.is_self(target.value):
        return isinstance(ctx.kind(target.value), k.Module)
    inherited = ctx.owner.lineage()[1:] if ctx.owner is not None else []
    return any(target.attr.value in one.attributes for one in inherited)
