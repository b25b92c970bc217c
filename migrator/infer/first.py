"""Whether what a Sequential does first overwrites its input: the layer that a list of layers begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator.infer import kinds as k
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
    keyword, first = args[0]
    if isinstance(first, k.Mapping) and first.items:
        return flag(k.in_place(first.items[0][1]))
    if keyword is None and isinstance(first, k.Module):
        return flag(k.in_place(first))
    if isinstance(first, k.Tuple) and first.items:
        return flag(k.in_place(first.items[0]))
    item = first.value if isinstance(first, k.Mapping) else k.element(first)
    if isinstance(item, k.Tuple) and item.items:  # OrderedDict([("relu", nn.ReLU())])
        item = item.items[-1]
    if k.in_place(item) is False:
        return ()
    value = node.args[0].value if node is not None and node.args else None
    if isinstance(value, cst.List) and value.elements:
        return flag(k.in_place(facts.kind(value.elements[0].value)))
    if isinstance(value, cst.Name) and function is not None:
        firsts = _firsts(function.node, value.value)
        found = {_begins(facts.kind(one)) for one in firsts}
        if found and not any(isinstance(facts.kind(one), k.Unknown) for one in firsts):
            return flag(found.pop() if len(found) == 1 else None)
    return flag(None)


def _begins(kind: k.Kind) -> bool | None:
    """Whether a layer, or what a list of layers begins with, works in place."""
    if isinstance(kind, k.Tuple) and kind.items:
        return k.in_place(kind.items[0])
    if isinstance(kind, (k.Sequence, k.Tuple)):
        return False if k.in_place(k.element(kind)) is False else None
    if isinstance(kind, k.Module) and kind.cls.rpartition(".")[2] in _PASSING:
        return None  # the one after it may
    return k.in_place(kind)


_PASSING = frozenset("Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d".split())


def flag(in_place: bool | None) -> Args:
    """What the arguments of a kind say of ``inplace``."""
    if in_place is False:
        return ()
    return (("inplace", True if in_place else "maybe"),)


def grown(receiver: k.Module, item: k.Kind, joined: k.Kind) -> k.Module:
    """The kind of a container to which a child was added: its first child stays the first."""
    empty = receiver.item is None or isinstance(receiver.item, k.Unknown)
    first = k.in_place(item if empty else receiver)
    return k.Module(receiver.cls, joined, flag(first))


def _firsts(function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """What a list called ``name`` may begin with: what a display holds, or the first that is appended."""
    found: list[cst.BaseExpression] = []
    _search(function.body, name, found)
    return found


def _search(body: cst.CSTNode, name: str, found: list[cst.BaseExpression]) -> bool:
    """Collect the first elements of a list; True once it surely has one."""
    statements: Sequence[Any] = getattr(body, "body", ())
    for statement in statements:
        if isinstance(statement, cst.If):
            branches = _branches(statement)
            ends = [_search(b, name, found) for b in branches]
            if all(ends) and statement.orelse is not None:
                return True
        elif isinstance(statement, (cst.For, cst.While, cst.With)):
            if _search(statement.body, name, found):
                return True  # a loop that runs no time makes no layer
        elif isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                first = _first_of(small, name)
                if first is not None:
                    found.append(first)
                    return True
    return False


def _branches(node: cst.If) -> list[cst.BaseSuite]:
    found = [node.body]
    other = node.orelse
    while isinstance(other, cst.If):
        found.append(other.body)
        other = other.orelse
    if other is not None:
        found.append(other.body)
    return found


def _first_of(small: cst.BaseSmallStatement, name: str) -> cst.BaseExpression | None:
    """The element that a statement puts first into an empty list."""
    value: cst.BaseExpression | None = None
    if isinstance(small, cst.Assign):
        if any(isinstance(t.target, cst.Name) and t.target.value == name for t in small.targets):
            value = small.value
    elif isinstance(small, cst.AugAssign):
        if isinstance(small.target, cst.Name) and small.target.value == name:
            value = small.value
    elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        func = small.value.func
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name):
            if func.value.value == name and small.value.args:
                if func.attr.value == "append":
                    return small.value.args[0].value
                if func.attr.value in ("extend", "insert"):
                    value = small.value.args[-1].value
    if isinstance(value, (cst.List, cst.Tuple)):
        return value.elements[0].value if value.elements else None
    return value
