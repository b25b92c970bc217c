"""What a list of layers may begin with: displays, what is appended, put in or taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.apart import apart_from, is_in
from migrator.infer.branches import branches, has_else, leaves
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.unbound import is_unbound_at_first

Entries = tuple[cst.BaseExpression | None, ...]
"""What a list begins with, None for what is not known; it may go on."""
States = frozenset[Entries]
_UNCLEAR: States = frozenset({(None,)})
_MOST = 16
_KEPT = 3
"""So many entries are followed: the second is the first of ``layers[1:]``."""


class Beginnings:
    """What a list may begin with where it is handed to a call: displays, what is appended, put in or taken away.

    It is a local one, or one that a constructor keeps (``self.layers``).
    """

    def __init__(
        self, facts: Facts, function: FunctionInfo, value: cst.BaseExpression, call: cst.Call
    ) -> None:
        self.facts, self.name, self.call = facts, syntax.code(value), call
        self.function = function
        kept = isinstance(value, cst.Attribute)
        self.keyed: dict[int, str] = {}
        """What the keys begin with under which a dict that was empty gets its entries, by the line that puts one."""
        handed = kept or self.name in syntax.parameters(function.node)
        empty = () if is_unbound_at_first(function, self.name) else ((),)  # no list: Python raises
        before = _UNCLEAR if handed else frozenset[Entries](empty)
        states, _ = self._block(function.node.body, before, stop=True)
        if kept and changed(facts, self.name, function):
            states = _UNCLEAR
        self.found = {one for state in states if state for one in self._first(state)}

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
            elif self._is_named(statement):
                states = _UNCLEAR  # a function of its own may fill it, too
            if len(states) > _MOST:
                states = _shorter(states)
        return states, False

    def _if(self, node: cst.If, states: States, stop: bool) -> tuple[States, bool]:
        after: States = frozenset() if has_else(node) else states
        for branch in branches(node):
            made, done = self._block(
                branch, states, stop and self.facts.tree.holds(branch, self.call)
            )
            if done:
                return made, True
            if not leaves(branch):
                after |= made
        return after, False

    def _loop(self, node: cst.For | cst.While, states: States, stop: bool) -> tuple[States, bool]:
        if isinstance(node, cst.For) and escapes(self.facts, self.name, node.iter):
            states = _UNCLEAR
        begins, after, current = states, States(), states
        for _ in range(_KEPT):
            current, _ = self._block(node.body, current, stop=False)
            after |= current
            begins |= current
        if stop and self.facts.tree.holds(node.body, self.call):
            return self._block(node.body, begins, stop=True)
        return after | states, False  # it may run no time

    def _first(self, state: Entries) -> Entries:
        """What of some entries sees the input first: a Dropout may hand on to the next what it is given."""
        for entry in state:
            kind = k.UNKNOWN if entry is None else self.facts.kind(layer_of(entry))
            if not passes(kind):
                return (entry,)
        return (state[-1],)

    def _is(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name | cst.Attribute) and syntax.code(node) == self.name

    def _is_named(self, node: cst.CSTNode) -> bool:
        return bool(_named(self.facts, self.name, node))

    def _small(self, node: cst.BaseSmallStatement, states: States) -> States:
        """The states after a statement."""
        match node:
            case cst.Assign([cst.AssignTarget(target)], value) if self._is(target):
                return self._assigned(value, states)
            case cst.AnnAssign(target, value=value) if self._is(target) and value:
                return self._assigned(value, states)
            case cst.Assign(
                [cst.AssignTarget(cst.Subscript(target, [cst.SubscriptElement(index)]))], value
            ) if self._is(target):
                return self._put(index, value, states)
            case cst.AugAssign(target, cst.AddAssign(), value) if self._is(target):
                return self._extended(value, states)
            case cst.Expr(cst.Call(cst.Attribute(target, cst.Name(method)), args)) if self._is(
                target
            ):
                given = [a.value for a in args if a.keyword is None and not a.star]
                if len(given) == len(args):
                    return self._method(method, given, states)
                return _UNCLEAR
            case cst.Assign() | cst.AugAssign() | cst.AnnAssign() | cst.Del():
                targets = getattr(node, "targets", None) or [node]
                bound = [getattr(t, "target", None) or node for t in targets]
                if any(self._is_named(one) for one in bound):
                    return _UNCLEAR
        return _UNCLEAR if escapes(self.facts, self.name, node) else states

    def _assigned(self, value: cst.BaseExpression, states: States) -> States:
        match value:
            case cst.List(elements) | cst.Tuple(elements):
                return _with(frozenset({()}), _entries(elements))
            case cst.Dict([]):
                return frozenset({()})
            case cst.Call(args=[]) if isinstance(self.facts.kind(value), k.Mapping):
                return frozenset({()})
            case cst.Call(args=[]) if self._is_list(value):
                return frozenset({()})
            case cst.Call(args=[cst.Arg(cst.List(elements) | cst.Tuple(elements))]) if (
                self._is_list(value)
            ):
                return _with(frozenset({()}), _entries(elements))
            case cst.Call(args=[cst.Arg(given, keyword=None, star="")]) if self._is_list(value):
                if self._is(given):
                    return states
                return _UNCLEAR if self._is_named(given) else frozenset({(given,)})
            case cst.Call(args=[cst.Arg(cst.Dict() | cst.List() as given)]) if isinstance(
                self.facts.kind(value), k.Mapping
            ):
                return self._paired(given)
            case cst.Subscript(
                target, [cst.SubscriptElement(cst.Slice(cst.Integer("1"), None, None))]
            ) if self._is(target):
                return frozenset(_without_first(state) for state in states)
            case cst.BinaryOperation(target, cst.Add(), added) if self._is(target):
                return self._extended(added, states)
            case cst.BinaryOperation(cst.Name() as left, cst.Add(), right) if shown := self._shown(
                left
            ):
                before = _with(frozenset({()}), _entries(shown.elements))
                more = states if self._is(right) else frozenset({(right, None)})
                return _behind(before, more)
            case cst.IfExp(body=one, orelse=other):
                return self._assigned(one, states) | self._assigned(other, states)
        if self._is_named(value):
            return _UNCLEAR
        return frozenset({(value,)})  # what begins as that does

    def _is_list(self, call: cst.Call) -> bool:
        """``nn.ModuleList(…)``, ``list(…)``: what has the layers that it is handed, and gets more."""
        return self.facts.callee(call) in (
            *("torch.nn.ModuleList", "torch.nn.Sequential"),
            *("builtins.list", "builtins.tuple"),
        )

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
        if isinstance(value, cst.Name) and (shown := self._shown(value)):
            value = shown
        if isinstance(value, cst.List | cst.Tuple):
            return _with(states, _entries(value.elements))
        return _with(states, (value, None)) | states  # it may have none

    def _shown(self, name: cst.Name) -> cst.List | None:
        """``lin = [nn.Linear(…), act]`` of a name that is only read as ``lin + layers`` besides."""
        tree, body = self.facts.tree, self.function.node.body
        if self._is(name) or name.value in syntax.parameters(self.function.node):
            return None
        shown: cst.List | None = None
        for one in tree.within(body, cst.Name):
            above = tree.parent(one)
            if one.value != name.value or isinstance(above, cst.BinaryOperation):
                continue
            line = tree.parent(above)
            if shown is not None or not isinstance(above, cst.AssignTarget):
                return None
            if not isinstance(line, cst.Assign) or not isinstance(line.value, cst.List):
                return None
            shown = line.value
        return shown

    def _put(self, index: cst.BaseSlice, value: cst.BaseExpression, states: States) -> States:
        """``layers[0] = value``; of a list that surely has entries another one is none of the first."""
        if isinstance(index, cst.Index) and (said := lead(index.value)):
            # another key than those before: the first entry stays the first, or is put there by the same line again
            others = [one for line, one in self.keyed.items() if line != id(value)]
            if any(one.startswith(said) or said.startswith(one) for one in others):
                return _UNCLEAR
            self.keyed[id(value)] = said
            return _with(states, (value,))
        if self.keyed:
            return _UNCLEAR
        if isinstance(index, cst.Index) and isinstance(index.value, cst.Integer):
            at = int(index.value.value)
            states = states - {()}  # which would raise
            if all(len(state) > at for state in states):
                return frozenset((*state[:at], value, *state[at + 1 :]) for state in states)
        if isinstance(index, cst.Index) and syntax.code(index.value) == "-1":
            states = states - {()}
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
            case "pop", [] | [cst.UnaryOperation(cst.Minus(), cst.Integer("1"))]:
                return frozenset(one for state in states for one in _without_last(state))
        return _UNCLEAR


_READING = frozenset(
    "len list tuple enumerate reversed range zip print sum min max isinstance str id type bool any all map".split()
)
_CHANGING = frozenset(
    "append extend insert pop remove clear reverse sort add_module __setitem__".split()
)


def escapes(facts: Facts, name: str, node: cst.CSTNode) -> bool:
    """Whether a line may fill a list in another way than by a statement: under another name, or in a function."""
    own = name.startswith("self.")
    if not facts.tree.has(node):
        return bool(_named(facts, name, node))
    for one in _named(facts, name, node):
        if _is_let_go(facts, one, node):
            return True
    for arg in facts.tree.within(node, cst.Arg) if own else ():
        if isinstance(arg.value, cst.Name) and arg.value.value == "self":
            return True
    return False


def _named(facts: Facts, name: str, node: cst.CSTNode) -> list[cst.BaseExpression]:
    """Where a node names ``layers`` or ``self.layers``."""
    if name.startswith("self."):
        return [one for one in facts.tree.within(node, cst.Attribute) if syntax.code(one) == name]
    found: list[cst.BaseExpression] = []
    for one in facts.tree.within(node, cst.Name):
        if one.value == name:
            above = facts.tree.parent(one) if facts.tree.has(one) else None
            if not isinstance(above, cst.Attribute) or above.attr is not one:
                if not isinstance(above, cst.Arg) or above.keyword is not one:
                    found.append(one)
    return found


def _is_let_go(
    facts: Facts, node: cst.BaseExpression, line: cst.CSTNode, deep: bool = True
) -> bool:
    """Whether a list may be changed by what one of its names stands in; ``deep``: functions are looked into."""
    if node is line:
        return False  # ``for layer in layers``
    above = facts.tree.parent(node)
    match above:
        case cst.Attribute():
            call = facts.tree.parent(above)
            called = isinstance(call, cst.Call) and call.func is above
            if not called or above.attr.value not in _CHANGING:
                return False
            return not isinstance(facts.tree.parent(call), cst.Expr)
        case cst.Arg(star="*"):
            return False
        case cst.Arg():
            call = facts.tree.parent(above)
            callee = facts.callee(call) or "" if isinstance(call, cst.Call) else ""
            short = callee.removeprefix("builtins.")
            return not (
                callee.startswith("torch.nn.")
                or short in _READING
                or (deep and _only_reads(facts, call, above))
            )
        case cst.Assign():
            return any(changed(facts, syntax.code(one.target)) for one in above.targets)
        case cst.Subscript(value=value):
            return value is not node
        case cst.StarredElement() | cst.CompFor() | cst.BinaryOperation() | cst.Comparison():
            return False
        case cst.ComparisonTarget() | cst.Return() | cst.FormattedStringExpression():
            return False
        case cst.UnaryOperation() | cst.Assert():
            return False
    return True


def _only_reads(facts: Facts, call: cst.Call, arg: cst.Arg) -> bool:
    """Whether a function of the file only reads what it is handed there."""
    info = facts.names.get(facts.callee(call) or "")
    if info is None or not facts.tree.has(info.node) or arg.star:
        return False
    names = [one for one in info.params if one not in ("self", "cls")]
    place = next(i for i, one in enumerate(call.args) if one is arg)
    if arg.keyword is not None:
        name = arg.keyword.value
    elif any(one.star for one in call.args[:place]) or place >= len(names):
        return False
    else:
        name = names[place]
    body = info.node.body
    within = (cst.Call, cst.AugAssign, cst.AssignTarget, cst.FunctionDef)
    for one in facts.tree.within(body, *within):
        if _changes(one, lambda node: isinstance(node, cst.Name) and node.value == name):
            return False
        if isinstance(one, cst.FunctionDef) and name in syntax.names(one):
            return False
    return not any(_is_let_go(facts, one, body, deep=False) for one in _named(facts, name, body))


def changed(facts: Facts, name: str, but: FunctionInfo | None = None) -> bool:
    """Whether a list is changed anywhere under a name, or, if it is an attribute, under a name of that attribute.

    ``but``: a function that is not looked at.
    """
    last = name.rpartition(".")[2] if name.startswith("self.") else ""

    others = apart_from(facts, but) if last else frozenset()

    def same(node: cst.CSTNode) -> bool:
        if last:
            named = isinstance(node, cst.Attribute) and node.attr.value == last
            return named and not (
                others and syntax.code(node) == name and is_in(facts, node, others)
            )
        return isinstance(node, cst.Name | cst.Attribute) and syntax.code(node) == name

    for one in facts.tree.of_type(cst.Call, cst.AugAssign, cst.AssignTarget):
        if but is not None and facts.tree.holds(but.node, one):
            continue
        if _changes(one, same):
            return True
    return False


def _changes(node: cst.CSTNode, same: Callable[[cst.CSTNode], bool]) -> bool:
    """Whether a call or an assignment puts something into a list, or takes it out."""
    match node:
        case cst.Call(cst.Attribute(value, cst.Name(method))):
            return method in _CHANGING and same(value)
        case cst.AugAssign(target):
            return same(target)
        case cst.AssignTarget(cst.Subscript(value)):
            return same(value)
    return False


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


def _behind(before: States, states: States) -> States:
    """The states of what is put behind other entries."""
    return frozenset(one for state in states for one in _with(before, state))


def _shorter(states: States) -> States:
    """What is known of many states that are told apart by more than their first entries."""
    short = frozenset(one if len(one) < 2 else (one[0], None) for one in states)
    return short if len(short) <= _MOST else _UNCLEAR


def _without_first(state: Entries) -> Entries:
    """What a list begins with when its first entry is gone; a list that was cut off goes on."""
    rest = state[1:]
    return (*rest, None) if len(state) == _KEPT else rest


def _without_last(state: Entries) -> set[Entries]:
    """What a list may begin with when its last entry is gone; of an empty one Python takes none."""
    if None in state:
        return {state[:end] for end in range(len(state) + 1)}
    if len(state) < _KEPT:
        return {state[:-1]} if state else set()
    return {state, state[:-1]}


_PASSING = frozenset("Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d".split())


def lead(key: cst.BaseExpression) -> str:
    """What a key begins with, up to its end where that is known."""
    if isinstance(key, cst.SimpleString):
        return f"{key.raw_value}\0"
    if isinstance(key, cst.FormattedString) and key.parts:
        first = key.parts[0]
        return first.value if isinstance(first, cst.FormattedStringText) else ""
    return ""


def layer_of(node: cst.BaseExpression) -> cst.BaseExpression:
    """The layer of an entry ``("conv", nn.Conv2d(3, 8, 3))`` of an OrderedDict."""
    named = isinstance(node, cst.Tuple) and len(node.elements) == 2
    named = named and isinstance(node.elements[0].value, cst.SimpleString | cst.FormattedString)  # type: ignore[attr-defined]
    return node.elements[1].value if named else node  # type: ignore[attr-defined]


def passes(kind: k.Kind) -> bool:
    """Whether a layer may give what it is given itself."""
    return isinstance(kind, k.Module) and kind.cls.rpartition(".")[2] in _PASSING
