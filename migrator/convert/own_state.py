"""What a function of the project gives of the state of a module, and what it keeps there of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from migrator import syntax
from migrator.convert.starred import spread_arguments
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

if TYPE_CHECKING:
    from migrator.convert.context import Context
    from migrator.convert.memory import Aliases

_ATTRIBUTE = "attr:"


def returned_state(
    ctx: Context, info: FunctionInfo, facts: Aliases | None, node: cst.BaseExpression
) -> frozenset[str]:
    """The attributes whose memory a call, or the read of a property, may give, as the caller writes them.

    ``facts``: what is known of the function; None where it was settled with another file: it may be any tensor then.
    """
    owner = _receiver(ctx, node)
    if facts is None:
        kinds = info.owner.attributes if info.owner is not None else {}
        names = [n for n, kind in kinds.items() if _may_be_tensor(kind)]
        found = {f"{_ATTRIBUTE}{owner}.{name}" for name in names} if owner else set()
        if not _own_name(info):
            found |= _of_arguments(ctx, node)
        return frozenset(found or {f"{_ATTRIBUTE}{syntax.code(node)}"})
    own = _own_name(info)
    found = set()
    for one in facts.given.all:
        if not one.startswith(_ATTRIBUTE):
            continue
        name = one.removeprefix(_ATTRIBUTE)
        head, _, rest = name.partition(".")
        if rest and head != own and head in _parameters(info):
            found |= {f"{_ATTRIBUTE}{path}.{rest}" for path in _given(ctx, info, node, head)}
            continue
        if own and owner and name.startswith(f"{own}."):
            found.add(f"{_ATTRIBUTE}{owner}{name.removeprefix(own)}")
        else:
            found.add(f"{_ATTRIBUTE}{syntax.code(node)}")
    return frozenset(found)


def _parameters(info: FunctionInfo) -> set[str]:
    return {one.name.value for one in syntax.named_parameters(info.node.params)}


def _given(ctx: Context, info: FunctionInfo, node: cst.BaseExpression, param: str) -> list[str]:
    """What a call hands over for a parameter, as the caller writes it: ``self.part`` of ``total(self.part)``."""
    if not isinstance(node, cst.Call):
        return [syntax.code(node)]
    given = [item.value for name, item in spread_arguments(ctx, node, info) if name == param]
    return [syntax.code(one) for one in given]


def _of_arguments(ctx: Context, node: cst.BaseExpression) -> set[str]:
    """The tensors that the modules have which a call hands over."""
    found = set()
    for item in node.args if isinstance(node, cst.Call) else ():
        info = ctx.owner if ctx.is_self(item.value) else ctx.class_of(ctx.kind(item.value))
        kinds = info.attributes if info is not None else {}
        names = [name for name, kind in kinds.items() if _may_be_tensor(kind)]
        found |= {f"{_ATTRIBUTE}{syntax.code(item.value)}.{name}" for name in names}
    return found


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
    if info.settled is not None:
        stored = info.settled.stored
    elif info in ctx.aliases and ctx.aliases[info] is None:
        return []  # a recursive one is judged without
    else:
        stored = stored_arguments(aliases(ctx, info))
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


def _may_be_tensor(kind: k.Kind) -> bool:
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(inner, (k.Tensor, k.Unknown))
