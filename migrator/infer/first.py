"""Whether what a Sequential does first overwrites its input: the layer that a list of layers begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.beginnings import Beginnings, escapes, layer_of, passes
from migrator.infer.facts import Facts, FunctionInfo

Args = tuple[tuple[str, Any], ...]


def begins_in_place(
    facts: Facts,
    function: FunctionInfo | None,
    node: cst.Call | None,
    args: Sequence[tuple[str | None, k.Kind]],
) -> Args:
    """The ``inplace`` argument of the kind of a container made by a call: that of its first child."""
    if not args:
        return ()
    value = node.args[0].value if node is not None and node.args else None
    return flag(first_in_place(facts, function, node, value, args[0]))


def first_in_place(
    facts: Facts,
    function: FunctionInfo | None,
    node: cst.Call | None,
    value: cst.BaseExpression | None,
    arg: tuple[str | None, k.Kind],
) -> bool | None:
    """Whether the first layer of what is handed to a call works in place: a layer, or several in a list or a dict."""
    keyword, first = arg
    if isinstance(value, cst.Call) and len(value.args) == 1 and isinstance(first, k.Mapping):
        value = value.args[0].value
    if isinstance(value, cst.Dict) and value.elements:  # OrderedDict({"relu": nn.ReLU()})
        return k.in_place(facts.kind(value.elements[0].value)) if _all_new(value) else None
    if isinstance(first, k.Mapping) and first.items:
        return k.in_place(first.items[0][1])
    if keyword is None and isinstance(first, k.Module):
        return k.in_place(first)
    if isinstance(first, k.Tuple) and first.items:
        return k.in_place(first.items[0])
    item = first.value if isinstance(first, k.Mapping) else k.element(first)
    if isinstance(item, k.Tuple) and item.items:  # OrderedDict([("relu", nn.ReLU())])
        item = item.items[-1]
    filled = isinstance(first, k.Mapping) and isinstance(value, cst.Name) and function is not None
    if k.in_place(item) is False and not (filled and _makes_in_place(facts, function)):
        # what a helper of the file puts into a list is not noted, nor what a generator gives
        starred = node is not None and bool(node.args) and node.args[0].star == "*"
        made = starred and isinstance(item, k.Unknown) and isinstance(value, _MADE)
        if not (made or _may_be_filled(facts, function, value)) or not _makes_in_place(facts, None):
            return False
    if isinstance(value, cst.List) and value.elements:
        return k.in_place(facts.kind(layer_of(value.elements[0].value)))
    if isinstance(value, cst.Name) and function is not None and is_rest(function, value):
        told = set(function.begins.values())
        return told.pop() if len(told) == 1 else None
    local = isinstance(value, cst.Name) or is_own(value)
    if local and value is not None and function is not None and node is not None:
        firsts = Beginnings(facts, function, value, node).found
        found = {_begins(facts.kind(layer_of(one))) for one in firsts if one is not None}
        if found and not any(
            one is None or isinstance(facts.kind(layer_of(one)), k.Unknown) for one in firsts
        ):
            return found.pop() if len(found) == 1 else None
    return None


_MADE = (cst.Call, cst.BinaryOperation, cst.Subscript, cst.IfExp, cst.ListComp, cst.GeneratorExp)
"""What gives a list that nothing else has a name for."""


def is_own(node: cst.BaseExpression | None) -> bool:
    """``self.layers``."""
    if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name):
        return False
    return node.value.value == "self"


def is_rest(function: FunctionInfo, name: cst.BaseExpression) -> bool:
    """Whether a name is that of ``*layers``, which the function does not give another meaning."""
    star = function.node.params.star_arg
    if not isinstance(star, cst.Param) or not isinstance(name, cst.Name):
        return False
    if star.name.value != name.value:
        return False
    bound = [
        syntax.names(one.target)
        for one in syntax.walk(function.node.body)
        if isinstance(one, cst.AssignTarget)
    ]
    return not any(name.value in one for one in bound)


def _may_be_filled(
    facts: Facts, function: FunctionInfo | None, value: cst.BaseExpression | None
) -> bool:
    """Whether a list of a function's own has another name, or is handed to a function that may add to it."""
    if function is None or value is None or not (isinstance(value, cst.Name) or is_own(value)):
        return False
    name = syntax.code(value)
    if isinstance(value, cst.Name):
        targets = facts.tree.within(function.node.body, cst.AssignTarget, cst.AnnAssign)
        if not any(syntax.code(one.target) == name for one in targets):
            return False
    return escapes(facts, name, function.node.body) or any(
        name in syntax.names(one) for one in facts.tree.within(function.node.body, cst.FunctionDef)
    )


def _makes_in_place(facts: Facts, function: FunctionInfo | None) -> bool:
    """Whether a function, or any of the file, makes a layer that may work in place: what is put into a dict by key, and
    into a list by another function, is not all noted."""
    if function is None:
        calls = facts.tree.of_type(cst.Call)
    else:
        calls = facts.tree.within(function.node, cst.Call)
    return any(k.in_place(facts.kind(one)) is not False for one in calls)


def _all_new(node: cst.Dict) -> bool:
    """Whether no entry of a dict takes the place of another: all keys are written there, and differ."""
    keys = [
        one.key.raw_value
        for one in node.elements
        if isinstance(one, cst.DictElement) and isinstance(one.key, cst.SimpleString)
    ]
    return len(set(keys)) == len(node.elements)


def _begins(kind: k.Kind) -> bool | None:
    """Whether a layer, or what a list of layers begins with, works in place."""
    if isinstance(kind, k.Tuple) and kind.items:
        return k.in_place(kind.items[0])
    if isinstance(kind, (k.Sequence, k.Tuple)):
        return False if k.in_place(k.element(kind)) is False else None
    return None if passes(kind) else k.in_place(kind)  # None: the one after it may


def flag(in_place: bool | None) -> Args:
    """What the arguments of a kind say of ``inplace``."""
    if in_place is False:
        return ()
    return (("inplace", True if in_place else "maybe"),)


def sliced_layers(facts: Facts, value: k.Module, node: cst.BaseSlice) -> k.Module:
    """The kind of ``net[1:]``: what it begins with is another layer than ``net`` does."""
    children = [child for name, child in value.args if name.isdigit()]
    others = tuple(one for one in value.args if one[0] != "inplace" and not one[0].isdigit())
    if not isinstance(node, cst.Slice):
        return value
    bounds = [facts.kind(one) if one else k.NONE for one in (node.lower, node.upper, node.step)]
    known = [one.value for one in bounds if isinstance(one, k.Const)]
    if children and len(known) == len(bounds):
        left = children[slice(*known)]
        if left:
            kept = tuple((str(i), child) for i, child in enumerate(left))
            return k.Module(value.cls, value.item, (*others, *flag(k.in_place(left[0])), *kept))
        return k.Module(
            value.cls, k.Module("torch.nn.Identity"), others
        )  # it gives what it is given
    begins = known[:1] in ([None], [0]) and node.step is None
    first = k.in_place(value if begins else value.item)
    return k.Module(value.cls, value.item, (*others, *flag(first)))


def grown(receiver: k.Module, item: k.Kind, joined: k.Kind) -> k.Module:
    """The kind of a container to which a child was added: its first child stays the first."""
    empty = receiver.item is None or isinstance(receiver.item, k.Unknown)
    first = k.in_place(item if empty else receiver)
    return k.Module(receiver.cls, joined, flag(first))


def with_item(known: k.Kind | None, item: k.Kind) -> k.Kind:
    """The kind of the children of a container that gets one more."""
    return item if known is None or isinstance(known, k.Unknown) else k.join(known, item)


def inserted(receiver: k.Module, place: k.Kind, item: k.Kind, joined: k.Kind) -> k.Module:
    """The kind of a container into which a child was put at a place: at the first one it is first."""
    known = place.value if isinstance(place, k.Const) else None
    behind = isinstance(known, int) and known > 0
    if behind or k.in_place(item) is k.in_place(receiver):
        return grown(receiver, item, joined)
    first = k.in_place(item) if known == 0 else None
    return k.Module(receiver.cls, joined, flag(first))
