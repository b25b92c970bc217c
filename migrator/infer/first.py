"""Whether what a Sequential does first overwrites its input: the layer that a list of layers begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
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
        return False
    if isinstance(value, cst.List) and value.elements:
        return k.in_place(facts.kind(_entry(value.elements[0].value)))
    if isinstance(value, cst.Name) and function is not None and is_rest(function, value):
        told = set(function.begins.values())
        return told.pop() if len(told) == 1 else None
    if isinstance(value, cst.Name) and function is not None and node is not None:
        firsts = Beginnings(facts, function, value.value, node).found
        found = {_begins(facts.kind(_entry(one))) for one in firsts if one is not None}
        if found and not any(
            one is None or isinstance(facts.kind(_entry(one)), k.Unknown) for one in firsts
        ):
            return found.pop() if len(found) == 1 else None
    return None


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


def _makes_in_place(facts: Facts, function: FunctionInfo | None) -> bool:
    """Whether a function makes a layer that may work in place: what is put into a dict by key is not all noted."""
    calls = facts.tree.within(function.node, cst.Call) if function is not None else []
    return any(k.in_place(facts.kind(one)) is not False for one in calls)


def _all_new(node: cst.Dict) -> bool:
    """Whether no entry of a dict takes the place of another: all keys are written there, and differ."""
    keys = [
        one.key.raw_value
        for one in node.elements
        if isinstance(one, cst.DictElement) and isinstance(one.key, cst.SimpleString)
    ]
    return len(set(keys)) == len(node.elements)


def _lead(key: cst.BaseExpression) -> str:
    """What a key begins with, up to its end where that is known."""
    if isinstance(key, cst.SimpleString):
        return f"{key.raw_value}\0"
    if isinstance(key, cst.FormattedString) and key.parts:
        first = key.parts[0]
        return first.value if isinstance(first, cst.FormattedStringText) else ""
    return ""


def _entry(node: cst.BaseExpression) -> cst.BaseExpression:
    """The layer of an entry ``("conv", nn.Conv2d(3, 8, 3))`` of an OrderedDict."""
    named = isinstance(node, cst.Tuple) and len(node.elements) == 2
    named = named and isinstance(node.elements[0].value, cst.SimpleString | cst.FormattedString)  # type: ignore[attr-defined]
    return node.elements[1].value if named else node  # type: ignore[attr-defined]


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


Entries = tuple[cst.BaseExpression | None, ...]
"""What a list begins with, None for what is not known; it may go on."""
States = frozenset[Entries]
_UNCLEAR: States = frozenset({(None,)})
_MOST = 16
_KEPT = 3
"""So many entries are followed: the second is the first of ``layers[1:]``."""


class Beginnings:
    """What a local list may begin with where it is handed to a call: displays, what is appended, put in or taken away.

    A loop is taken to run: one that runs no time makes no layer.
    """

    def __init__(self, facts: Facts, function: FunctionInfo, name: str, call: cst.Call) -> None:
        self.facts, self.name, self.call = facts, name, call
        self.keyed: dict[int, str] = {}
        """What the keys begin with under which a dict that was empty gets its entries, by the line that puts one."""
        states, _ = self._block(function.node.body, frozenset({()}), stop=True)
        self.found = {state[0] for state in states if state}

    def _block(self, body: cst.BaseSuite, states: States, stop: bool) -> tuple[States, bool]:
        """The states after some statements, or at the call where it stands among them and is to be stopped at."""
        for statement in body.body:
            here = stop and self.facts.tree.holds(statement, self.call)
            if isinstance(statement, cst.SimpleStatementLine):
                if here:
                    return states, True
                for small in statement.body:
                    states = self._small(small, states)
            elif isinstance(statement, cst.If):
                states, done = self._if(statement, states, here)
                if done:
                    return states, True
            elif isinstance(statement, cst.For | cst.While):
                states, done = self._loop(statement, states, here)
                if done:
                    return states, True
            elif isinstance(statement, cst.With):
                states, done = self._block(statement.body, states, here)
                if done:
                    return states, True
            elif not isinstance(statement, cst.FunctionDef | cst.ClassDef):
                if self.name in syntax.names(statement):
                    states = _UNCLEAR
            if len(states) > _MOST:
                states = _UNCLEAR
        return states, False

    def _if(self, node: cst.If, states: States, stop: bool) -> tuple[States, bool]:
        branches = _branches(node)
        after: States = frozenset() if _has_else(node) else states
        for branch in branches:
            made, done = self._block(
                branch, states, stop and self.facts.tree.holds(branch, self.call)
            )
            if done:
                return made, True
            if not _leaves(branch):
                after |= made
        return after, False

    def _loop(self, node: cst.For | cst.While, states: States, stop: bool) -> tuple[States, bool]:
        begins, after, current = states, States(), states
        for _ in range(_KEPT):
            current, _ = self._block(node.body, current, stop=False)
            after |= current
            begins |= current
        if stop and self.facts.tree.holds(node.body, self.call):
            return self._block(node.body, begins, stop=True)
        return after, False

    def _small(self, node: cst.BaseSmallStatement, states: States) -> States:
        """The states after a statement."""
        match node:
            case cst.Assign([cst.AssignTarget(cst.Name(name))], value) if name == self.name:
                return self._assigned(value, states)
            case cst.AnnAssign(cst.Name(name), value=value) if name == self.name and value:
                return self._assigned(value, states)
            case cst.Assign(
                [cst.AssignTarget(cst.Subscript(cst.Name(name), [cst.SubscriptElement(index)]))],
                value,
            ) if name == self.name:
                return self._put(index, value, states)
            case cst.AugAssign(cst.Name(name), cst.AddAssign(), value) if name == self.name:
                return self._extended(value, states)
            case cst.Expr(cst.Call(cst.Attribute(cst.Name(name), cst.Name(method)), args)) if (
                name == self.name
            ):
                given = [a.value for a in args if a.keyword is None and not a.star]
                if len(given) == len(args):
                    return self._method(method, given, states)
                return _UNCLEAR
            case cst.Assign() | cst.AugAssign() | cst.AnnAssign() | cst.Del():
                targets = getattr(node, "targets", None) or [node]
                bound = [getattr(t, "target", None) or node for t in targets]
                if any(self.name in syntax.names(one) for one in bound):
                    return _UNCLEAR
        return states

    def _assigned(self, value: cst.BaseExpression, states: States) -> States:
        match value:
            case cst.List(elements) | cst.Tuple(elements):
                return _with(frozenset({()}), _entries(elements))
            case cst.Dict([]):
                return frozenset({()})
            case cst.Call(args=[]) if isinstance(self.facts.kind(value), k.Mapping):
                return frozenset({()})
            case cst.Call(args=[cst.Arg(cst.Dict() | cst.List() as given)]) if isinstance(
                self.facts.kind(value), k.Mapping
            ):
                return self._paired(given)
            case cst.Subscript(
                cst.Name(name),
                [cst.SubscriptElement(cst.Slice(cst.Integer("1"), None, None))],
            ) if name == self.name:
                return frozenset(_without_first(state) for state in states)
            case cst.BinaryOperation(cst.Name(name), cst.Add(), added) if name == self.name:
                return self._extended(added, states)
        if self.name in syntax.names(value):
            return _UNCLEAR
        return frozenset({(value,)})  # what begins as that does

    def _paired(self, given: cst.Dict | cst.List) -> States:
        """``OrderedDict([("conv", layer)])``, ``OrderedDict({"conv": layer})``."""
        pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
        for one in given.elements:
            if isinstance(one, cst.DictElement):
                pairs.append((one.key, one.value))
            elif isinstance(one.value, cst.Tuple) and len(one.value.elements) == 2:
                pairs.append((one.value.elements[0].value, one.value.elements[1].value))
        if len(pairs) < len(given.elements):
            return _UNCLEAR
        states: States = frozenset({()})
        for key, value in pairs:
            states = self._put(cst.Index(key), value, states)
        return states

    def _extended(self, value: cst.BaseExpression, states: States) -> States:
        if isinstance(value, cst.List | cst.Tuple):
            return _with(states, _entries(value.elements))
        return _with(states, (value, None))

    def _put(self, index: cst.BaseSlice, value: cst.BaseExpression, states: States) -> States:
        """``layers[0] = value``; of a list that surely has entries another one is none of the first."""
        if isinstance(index, cst.Index) and (lead := _lead(index.value)):
            # another key than those before: the first entry stays the first, or is put there by the same line again
            others = [one for line, one in self.keyed.items() if line != id(value)]
            if any(one.startswith(lead) or lead.startswith(one) for one in others):
                return _UNCLEAR
            self.keyed[id(value)] = lead
            return _with(states, (value,))
        if self.keyed:
            return _UNCLEAR
        if isinstance(index, cst.Index) and isinstance(index.value, cst.Integer):
            at = int(index.value.value)
            if all(len(state) > at for state in states):
                return frozenset((*state[:at], value, *state[at + 1 :]) for state in states)
        if isinstance(index, cst.Index) and syntax.code(index.value) == "-1":
            return frozenset(
                state if len(state) == _KEPT else (*state[:-1], value) for state in states
            )
        return _UNCLEAR

    def _method(self, method: str, given: Sequence[cst.BaseExpression], states: States) -> States:
        match method, given:
            case "append", [value]:
                return _with(states, (value,))
            case "extend", [value]:
                return self._extended(value, states)
            case "insert", [cst.Integer("0"), value]:
                return frozenset(((value, *state)[:_KEPT]) for state in states)
            case "pop", [cst.Integer("0")]:
                return frozenset(_without_first(state) for state in states)
        return _UNCLEAR


def _entries(elements: Sequence[cst.BaseElement]) -> Entries:
    """The entries of a display; of a starred one it is known what it begins with, and not where it ends."""
    found: list[cst.BaseExpression | None] = []
    for element in elements:
        found.append(element.value)
        if isinstance(element, cst.StarredElement):
            return (*found, None)
    return tuple(found)


def _with(states: States, entries: Entries) -> States:
    """The states with more entries behind; behind what is not known nothing is."""
    return frozenset(state if None in state else (*state, *entries)[:_KEPT] for state in states)


def _without_first(state: Entries) -> Entries:
    """What a list begins with when its first entry is gone; a list that was cut off goes on."""
    rest = state[1:]
    return (*rest, None) if len(state) == _KEPT or not state else rest


def _has_else(node: cst.If) -> bool:
    while isinstance(node.orelse, cst.If):
        node = node.orelse
    return node.orelse is not None


def _leaves(body: cst.BaseSuite) -> bool:
    last = body.body[-1] if body.body else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(small, cst.Raise | cst.Return | cst.Continue)


def _branches(node: cst.If) -> list[cst.BaseSuite]:
    found = [node.body]
    other = node.orelse
    while isinstance(other, cst.If):
        found.append(other.body)
        other = other.orelse
    if other is not None:
        found.append(other.body)
    return found
