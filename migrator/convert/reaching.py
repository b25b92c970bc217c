"""Which lines give a local name the value that it has at one place of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from migrator import syntax
from migrator.tree import Tree

START = "start"
"""The value that a name has where the function begins: that of a parameter."""
UNKNOWN = "unknown"
HANDED = "handed"
"""What the caller of a lambda gives it."""


@dataclass(frozen=True)
class Each:
    """The entries of a list, or rows of a tensor, that a loop gives its name in turn."""

    of: cst.BaseExpression


Definition = cst.CSTNode | Each | str
"""A value that is assigned, an AugAssign, START, HANDED or UNKNOWN."""
State = frozenset[Definition]
_FILLING = frozenset("append extend insert add update setdefault __setitem__".split())
_CHOOSING = (cst.BooleanOperation, cst.IfExp, cst.CompFor, cst.Lambda)


def reaching(
    tree: Tree, body: cst.BaseSuite, use: cst.Name, keeps: Callable[[cst.BaseExpression], bool]
) -> State:
    """What may have given a name the value that it has at one place.

    Args:
      keeps: whether a value that is written into the tensor, ``y[0] = value``, changes nothing that is asked about it;
        another leaves the tensor UNKNOWN.
    """
    for around in reversed(tree.around(use)):
        if isinstance(around, cst.Lambda) and use.value in _parameters(around):
            return frozenset({HANDED})
        if isinstance(around, (cst.GeneratorExp, cst.ListComp, cst.SetComp, cst.DictComp)):
            loops = [
                one
                for one in tree.within(around, cst.CompFor)
                if use.value in syntax.names(one.target) and not tree.holds(one.iter, use)
            ]
            if loops:
                return _each(loops[-1].target, loops[-1].iter)
        if around is body:
            break
    walk = _Walk(tree, use, keeps)
    walk.block(body, frozenset({START}))
    return walk.found


class _Walk:
    def __init__(
        self, tree: Tree, use: cst.Name, keeps: Callable[[cst.BaseExpression], bool]
    ) -> None:
        self.tree, self.use, self.name, self.keeps = tree, use, use.value, keeps
        self.found: State = frozenset()

    def block(self, body: cst.CSTNode, state: State) -> State:
        """The state behind a suite."""
        for one in getattr(body, "body", ()):
            state = self._statement(one, state)
        return state

    def _statement(self, node: cst.CSTNode, state: State) -> State:
        match node:
            case cst.SimpleStatementLine(lines):
                for one in lines:
                    state = self._small(one, state)
            case cst.If():
                state = self._read(node.test, state)
                after = self.block(node.body, state)
                if isinstance(node.orelse, cst.If):
                    return after | self._statement(node.orelse, state)
                return after | (self.block(node.orelse.body, state) if node.orelse else state)
            case cst.While() | cst.For():
                state = self._loop(node, state)
                return self.block(node.orelse.body, state) if node.orelse else state
            case cst.With():
                for item in node.items:
                    state = self._read(item.item, state)
                    if item.asname is not None and self._binds(item.asname.name):
                        state = frozenset({UNKNOWN})
                return self.block(node.body, state)
            case cst.Try():
                after = state | self.block(node.body, state)
                for handler in node.handlers:
                    after |= self.block(handler.body, after)
                after = self.block(node.orelse.body, after) if node.orelse else after
                return self.block(node.finalbody.body, after) if node.finalbody else after
            case cst.FunctionDef() | cst.ClassDef():
                return frozenset({UNKNOWN}) if node.name.value == self.name else state
            case cst.BaseCompoundStatement():
                if self.tree.holds(node, self.use):
                    self.found |= {UNKNOWN}
                return state | {UNKNOWN} if self.name in syntax.names(node) else state
            case _:
                return self._small(node, state)
        return state

    def _loop(self, node: cst.While | cst.For, state: State) -> State:
        known, behind = state, frozenset() if _surely_runs(node) else state
        for _ in range(2):
            if isinstance(node, cst.While):
                entered = self._read(node.test, known)
            else:
                entered = self._read(node.iter, known)
                if self._binds(node.target):
                    entered = _each(node.target, node.iter)
            ended = self.block(node.body, entered)
            known, behind = known | ended, behind | ended
        return behind if ended else known

    def _small(self, node: cst.CSTNode, state: State) -> State:
        match node:
            case cst.Assign():
                state = self._read(node.value, state)
                for one in node.targets:
                    state = self._bound(one.target, node.value, state)
            case cst.AnnAssign() if node.value is not None:
                state = self._bound(node.target, node.value, self._read(node.value, state))
            case cst.AugAssign():
                state = self._read(node.target, self._read(node.value, state))
                if isinstance(node.target, cst.Name) and node.target.value == self.name:
                    return frozenset({node})
                return self._bound(node.target, node.value, state)
            case cst.Expr(value):
                state = self._read(value, state)
                if isinstance(value, cst.Call) and self._may_write(value):
                    return frozenset({UNKNOWN})
            case cst.Return() | cst.Raise():
                self._read(node, state)
                return frozenset()
            case _:
                state = self._read(node, state)
        return state

    def _read(self, node: cst.CSTNode, state: State) -> State:
        """The state behind an expression; the place that is asked about may lie in it."""
        if node is self.use or self.tree.holds(node, self.use):
            self.found |= state
        for one in self.tree.within(node, cst.NamedExpr):
            if self._binds(one.target):
                around = self.tree.around(one)
                chosen = any(
                    isinstance(each, _CHOOSING) and self.tree.holds(node, each) for each in around
                )
                state = frozenset({one.value}) | (state if chosen else frozenset())
        for call in self.tree.within(node, cst.Call):
            state = self._in_place(call, state)
        return state

    def _in_place(self, call: cst.Call, state: State) -> State:
        """``y.add_(x)``, ``y[0].copy_(x)``."""
        func = call.func
        word = func.attr.value if isinstance(func, cst.Attribute) else ""
        in_place = word.endswith("_") and not word.endswith("__")
        if not (in_place or word in _FILLING) or _root(func) != self.name:
            return state
        if word == "detach_":
            return frozenset({call})
        kept = word != "requires_grad_" and all(self.keeps(one.value) for one in call.args)
        return state if kept else frozenset({UNKNOWN})

    def _may_write(self, call: cst.Call) -> bool:
        """Whether a call alone on its line, ``fill(y)``, may write to what the name stands for."""
        return any(self.name in syntax.names(one) for one in call.args)

    def _bound(self, target: cst.CSTNode, value: cst.BaseExpression, state: State) -> State:
        if isinstance(target, cst.Name):
            return frozenset({value}) if target.value == self.name else state
        if isinstance(target, (cst.Tuple, cst.List)):
            return self._unpacked(target, value, state)
        if _root(target) != self.name:
            return state
        if isinstance(target, cst.Attribute):
            return frozenset({UNKNOWN}) if "grad" in target.attr.value else state
        return state if self.keeps(value) else frozenset({UNKNOWN})

    def _unpacked(
        self, target: cst.Tuple | cst.List, value: cst.BaseExpression, state: State
    ) -> State:
        for at, one in enumerate(target.elements):
            if self._binds(one.value):
                same = isinstance(value, (cst.Tuple, cst.List))
                if same and len(value.elements) == len(target.elements):  # type: ignore[attr-defined]
                    return self._bound(one.value, value.elements[at].value, state)  # type: ignore[attr-defined]
                return frozenset({UNKNOWN})
        return state

    def _binds(self, target: cst.CSTNode) -> bool:
        return self.name in syntax.names(target)


def _surely_runs(node: cst.While | cst.For) -> bool:
    """``for i in range(3)``, ``for z in (x, y)``, without a way out of a turn."""
    if isinstance(node, cst.While) or any(
        isinstance(one, (cst.Break, cst.Continue)) for one in syntax.walk(node.body)
    ):
        return False
    match node.iter:
        case cst.Call(cst.Name("range"), [cst.Arg(cst.Integer(count))]):
            return count != "0"
        case cst.Tuple(elements) | cst.List(elements):
            return bool(elements)
    return False


def _each(target: cst.CSTNode, iterated: cst.BaseExpression) -> State:
    """What a loop gives its name."""
    return frozenset({Each(iterated) if isinstance(target, cst.Name) else UNKNOWN})


def _root(node: cst.CSTNode) -> str:
    """The name at the root of ``y[0].view(-1)``."""
    while isinstance(node, (cst.Attribute, cst.Subscript, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else ""


def _parameters(node: cst.Lambda) -> Iterator[str]:
    params = node.params
    stars = [one for one in (params.star_arg, params.star_kwarg) if isinstance(one, cst.Param)]
    every = (*params.posonly_params, *params.params, *params.kwonly_params, *stars)
    return (one.name.value for one in every)
