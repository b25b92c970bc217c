"""What a function of the project gives of the state of a module, and what it keeps there of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from migrator import syntax
from migrator.convert.overriding import by_place, overriding
from migrator.convert.returned import returned_state
from migrator.convert.starred import spread_arguments
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

if TYPE_CHECKING:
    from migrator.convert.context import Context
    from migrator.convert.memory import Aliases

_ATTRIBUTE = "attr:"


def given_state(ctx: Context, info: FunctionInfo, node: cst.BaseExpression) -> frozenset[str]:
    """The attributes whose memory a call, or the read of a property, may give, as the caller writes them."""
    owner, own = _receiver(ctx, node), _own_name(info)
    found = set()
    for one in returned_state(ctx, info):
        name = one.removeprefix(_ATTRIBUTE)
        head, _, rest = name.partition(".")
        if rest and head != own and head in _parameters(info):
            found |= {f"{_ATTRIBUTE}{path}.{rest}" for path in _given(ctx, info, node, head)}
        elif own and owner and name.startswith(f"{own}."):
            found.add(f"{_ATTRIBUTE}{owner}{name.removeprefix(own)}")
        else:
            found.add(f"{_ATTRIBUTE}{syntax.code(node)}")
    return frozenset(found)


def state_names(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The names of the attributes that a function may return, by way of others too: ``total``, ``running_mean``."""
    if info.settled is not None:
        return info.settled.state
    if info not in ctx.state_names:
        ctx.state_names[info] = frozenset()  # a recursive one returns what its other lines do
        given = returned_state(ctx, info)
        found = {one.removeprefix(_ATTRIBUTE).rpartition(".")[2] for one in given}
        for call in ctx.facts.tree.within(info.node.body, cst.Call) if given else ():
            called = called_function(ctx, call)
            found |= state_names(ctx, called) if called is not None else set()
        ctx.state_names[info] = frozenset(found)
    return ctx.state_names[info]


def called_function(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    """The function that a call runs, or the forward pass of a layer, of a class of the project."""
    kind = ctx.kind(call.func)
    if isinstance(kind, k.Module):
        own = ctx.facts.classes.get(kind.cls)
        return own.method("forward") if own is not None else None
    return ctx.facts.names.get(ctx.facts.callee(call) or "")


def _parameters(info: FunctionInfo) -> set[str]:
    return {one.name.value for one in syntax.named_parameters(info.node.params)}


def _given(ctx: Context, info: FunctionInfo, node: cst.BaseExpression, param: str) -> list[str]:
    """What a call hands over for a parameter, as the caller writes it: ``self.part`` of ``total(self.part)``."""
    if not isinstance(node, cst.Call):
        return [syntax.code(node)]
    given = [item.value for name, item in spread_arguments(ctx, node, info) if name == param]
    return [syntax.code(one) for one in given]


def stored_arguments(facts: Aliases) -> frozenset[tuple[str, str]]:
    """Parameters of a method, and the attributes of its object that may hold their memory once it has run."""
    own = _own_name(facts.info)
    if not own:
        return frozenset()
    found = set()
    states = (*facts.before.values(), facts.after)
    attribute = f"{_ATTRIBUTE}{own}."
    for memory in set().union(*(state.values() for state in states)):
        held = [m.removeprefix(attribute) for m in memory if m.startswith(attribute)]
        if held:
            params = [m.removeprefix("param:") for m in memory if m.startswith("param:")]
            found |= {(param, name) for param in params for name in held}
    return frozenset(found)


def kept_by_call(
    ctx: Context, info: FunctionInfo, call: cst.Call
) -> list[tuple[cst.BaseExpression, str]]:
    """The arguments of a call that an attribute holds from then on, and that attribute as the caller writes it."""
    from migrator.convert.alias import bound_arguments
    from migrator.convert.memory import aliases

    owner = _receiver(ctx, call)
    if not owner or info.short == "__init__":
        return []
    stored: frozenset[tuple[str, str]] = frozenset()
    for one in (info, *overriding(ctx, info)):
        if one.settled is not None:
            stored |= one.settled.stored
        elif ctx.aliases.get(one, one) is not None:  # a recursive one is judged without
            found = stored_arguments(aliases(ctx, one))
            stored |= {(by_place(info, one, param), name) for param, name in found}
    if not stored:
        return []
    given = dict(bound_arguments(call, info))
    return [
        (given[param].value, f"{owner}.{attribute}")
        for param, attribute in sorted(stored)
        if param in given
    ]


def property_of(ctx: Context, node: cst.Attribute) -> FunctionInfo | None:
    """The function that runs where a property of a class of the project is read."""
    kind = ctx.kind(node.value)
    info = ctx.class_of(kind)
    if isinstance(kind, k.Other):
        info = ctx.facts.classes.get(kind.type)
    method = info.method(node.attr.value) if info is not None else None
    return method if method is not None and "property" in method.decorators else None


def _receiver(ctx: Context, node: cst.BaseExpression) -> str:
    """``self`` of ``self.get()`` and ``self.running``, ``self.layer`` of ``self.layer(x)``; "" for other calls."""
    if isinstance(node, cst.Attribute):
        return syntax.code(node.value)
    func = node.func if isinstance(node, cst.Call) else None
    if func is not None and isinstance(ctx.kind(func), k.Module):
        return syntax.code(func)
    return syntax.code(func.value) if isinstance(func, cst.Attribute) else ""


def _own_name(info: FunctionInfo) -> str:
    """What a method calls its object."""
    params = [*info.node.params.posonly_params, *info.node.params.params]
    return params[0].name.value if info.has_receiver and params else ""
