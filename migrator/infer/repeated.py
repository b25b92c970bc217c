"""Functions that give layers of a class they are handed: ``make_layer(Block, 4)``.

    def make_layer(block, n, **kwargs):
        layers = []
        for _ in range(n):
            layers.append(block(**kwargs))
        return nn.Sequential(*layers)

What such a function of another file gives is known from what a call hands it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import libcst as cst

from migrator.assignments import BINDING, bound, bound_by
from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo

_CONTAINERS = {"torch.nn.Sequential": "*", "torch.nn.ModuleList": ""}
"""Containers, and how they are given a list."""


def repeated(facts: Facts, info: FunctionInfo) -> tuple[str, ...]:
    """The class of the container that a function gives, and the parameters that make all its layers; empty if it does not."""
    if info.owner is not None or info.outer is not None:
        return ()
    tree = facts.tree
    returns = tree.within(info.node.body, cst.Return)
    if len(returns) != 1 or not isinstance(returns[0].value, cst.Call):
        return ()
    call = returns[0].value
    container = facts.callee(call) or ""
    if len(call.args) != 1 or call.args[0].star != _CONTAINERS.get(container):
        return ()
    given = call.args[0].value
    made = _of_name(facts, info, given) if isinstance(given, cst.Name) else _items(given)
    if made is None:
        return ()
    binding = (
        one for one in tree.within(info.node.body, *BINDING) if not isinstance(one, cst.Param)
    )
    names = {name for one in binding for name in bound(bound_by(one))}
    found: set[str] = set()
    for item in made:
        func = item.func if isinstance(item, cst.Call) else None
        if not isinstance(func, cst.Name) or func.value not in info.params or func.value in names:
            return ()
        found.add(func.value)
    return (container, *sorted(found)) if found else ()


def _items(node: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The expressions that make the items of a list."""
    if isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return [node.elt]
    if isinstance(node, (cst.List, cst.Tuple)):
        if any(isinstance(one, cst.StarredElement) for one in node.elements):
            return None
        return [one.value for one in node.elements]
    return None


def _of_name(facts: Facts, info: FunctionInfo, name: cst.Name) -> list[cst.BaseExpression] | None:
    """What makes the items of a list that has a name; None where something else is done to it."""
    found: list[cst.BaseExpression] = []
    for node in facts.tree.within(info.node.body, cst.Name):
        if node is name or node.value != name.value:
            continue
        match facts.tree.around(node):
            case [*_, cst.Assign(targets=[_]) as assign, cst.AssignTarget()]:
                new = _items(assign.value)
            case [*_, cst.AugAssign(operator=cst.AddAssign()) as adding] if node is adding.target:
                new = _items(adding.value)
            case [
                *_,
                cst.Call(args=[cst.Arg(star="", value=value)]),
                cst.Attribute(attr=cst.Name("append")),
            ]:
                new = [value]
            case _:
                return None
        if new is None:
            return None
        found.extend(new)
    return found


def given_layers(
    facts: Facts, info: FunctionInfo, args: Sequence[tuple[str | None, k.Kind]]
) -> k.Kind | None:
    """What a function of another file gives where a call hands it classes of the project; None where that is not known."""
    if info.settled is None or not info.settled.repeats:
        return None
    container, *makers = info.settled.repeats
    params = info.node.params
    order = [p.name.value for p in (*params.posonly_params, *params.params)]
    handed: dict[str, k.Kind] = {}
    for i, (keyword, kind) in enumerate(args):
        if keyword == "*":
            return None
        name = keyword if keyword is not None else order[i] if i < len(order) else ""
        handed[name or ""] = kind
    items = []
    for maker in makers:
        kind = handed.get(maker, k.UNKNOWN)
        for name in (kind.among or (kind.name,)) if isinstance(kind, k.Class) else ("",):
            own = facts.classes.get(name)
            if own is None or own.torch_base != "torch.nn.Module" or own.method("forward") is None:
                return None
            items.append(k.Module(name))
    return k.Module(container, functools.reduce(k.join, items))  # type: ignore[arg-type]
