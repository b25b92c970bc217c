"""The lines of a block that lead from some variables to others: what each reads, binds and writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by

_FILLING = frozenset(
    "append extend insert update setdefault add pop popitem clear remove discard sort reverse".split()
)
"""Methods that change what they are called on."""
_LEAVING = (
    cst.Return,
    cst.Yield,
    cst.Await,
    cst.Global,
    cst.Nonlocal,
    cst.Del,
    cst.Break,
    cst.Continue,
)
_PURE_ROOTS = frozenset("torch F nn np math".split())
_PLAIN = frozenset(
    "len range int float bool str list tuple dict zip enumerate min max sum abs print isinstance".split()
)


def read_freely(node: cst.CSTNode) -> set[str]:
    """The variables that an expression or statement reads of its surroundings."""
    found = set(syntax.names(node)) - _inside(node)
    return found


def _inside(node: cst.CSTNode) -> set[str]:
    """What only comprehensions and lambdas bind."""
    own: set[str] = set()
    for one in syntax.walk(node):
        if isinstance(one, cst.CompFor):
            own |= set(bound(one.target))
        elif isinstance(one, cst.Lambda):
            own |= {p.name.value for p in syntax.walk(one.params) if isinstance(p, cst.Param)}
    return own


def _read_first(node: Any) -> set[str]:
    """What a compound statement reads before it binds it itself."""
    if isinstance(node, cst.IndentedBlock):
        found: set[str] = set()
        known: set[str] = set()
        for one in node.body:
            line = Line(one)
            found |= line.reads - known
            known |= line.binds if not line.keeps else set()
        return found
    if isinstance(node, cst.For):
        own = set(bound(node.target))
        after = _read_first(node.orelse.body) if node.orelse is not None else set()
        target = read_freely(node.target) - own
        return read_freely(node.iter) | target | (_read_first(node.body) - own) | after
    if isinstance(node, cst.With):
        own = {n for item in node.items if item.asname for n in bound(item.asname.name)}
        items = {n for item in node.items for n in read_freely(item.item)}
        return items | (_read_first(node.body) - own)
    if isinstance(node, (cst.If, cst.While)):
        found = read_freely(node.test) | _read_first(node.body)
        other = node.orelse
        if isinstance(other, cst.Else):
            return found | _read_first(other.body)
        return found | (_read_first(other) if other is not None else set())
    return read_freely(node)


def _surely(node: Any) -> set[str]:
    if isinstance(node, cst.If):
        other = node.orelse
        if other is None:
            return set()
        rest = _surely(other.body if isinstance(other, cst.Else) else other)
        return _surely(node.body) & rest
    if isinstance(node, cst.IndentedBlock):
        return {name for one in node.body for name in _surely(one)}
    if isinstance(node, cst.With):
        own = {n for item in node.items if item.asname for n in bound(item.asname.name)}
        return own | _surely(node.body)
    if isinstance(node, (cst.SimpleStatementLine, cst.FunctionDef)):
        return Line(node).rebound
    return set()


def names_bound(node: cst.CSTNode) -> set[str]:
    """The variables that a statement binds, or whose objects it writes to."""
    return set(Line(node).binds)


class Line:
    """A statement of a block.

    Attributes:
      node: it, with all that stands in it.
    """

    def __init__(self, node: cst.CSTNode) -> None:
        self.node = node

    @cached_property
    def _nodes(self) -> list[cst.CSTNode]:
        return syntax.walk(self.node)

    @cached_property
    def rebound(self) -> set[str]:
        """What is bound anew."""
        if isinstance(self.node, (cst.FunctionDef, cst.ClassDef)):
            return {self.node.name.value}
        found: set[str] = set()
        for one in self._nodes:
            if isinstance(one, BINDING) and not isinstance(one, (cst.CompFor, cst.Param)):
                found |= set(bound(bound_by(one)))
            elif isinstance(one, cst.FunctionDef):
                found.add(one.name.value)
        return found

    @cached_property
    def _written(self) -> set[str]:
        """Whose object is changed: ``x[i] = y``, ``x.y = z``, ``x += y``, ``x.add_(y)``, ``x.append(y)``."""
        found: set[str] = set()
        for one in self._nodes:
            if isinstance(one, BINDING) and not isinstance(one, (cst.CompFor, cst.Param)):
                target = bound_by(one)
                parts = [target]
                if isinstance(target, (cst.Tuple, cst.List)):
                    parts = [element.value for element in target.elements]
                found |= {
                    _root(p) for p in parts if not isinstance(p, cst.Name) and not _is_leaf(p)
                }
                if isinstance(one, cst.AugAssign):
                    found.add(_root(one.target))
            elif isinstance(one, cst.Call) and isinstance(one.func, cst.Attribute):
                method = one.func.attr.value
                in_place = method.endswith("_") and not method.endswith("__")
                if (in_place and method != "requires_grad_") or method in _FILLING:
                    found.add(_root(one.func.value))
            if isinstance(one, cst.Arg) and one.keyword and one.keyword.value == "out":
                found.add(_root(one.value))
        return found

    @cached_property
    def binds(self) -> set[str]:
        """The variables that are bound, or whose objects are written."""
        return (self.rebound | self._written) - {""}

    @cached_property
    def reads(self) -> set[str]:
        """The variables that are read; a loop's own, and those of inner functions, are not."""
        node: Any = self.node
        if isinstance(node, cst.FunctionDef):
            own = {p.name.value for p in syntax.walk(node.params) if isinstance(p, cst.Param)}
            inner = {n for one in node.body.body for n in Line(one).rebound}
            return read_freely(node) - own - inner - {node.name.value}
        if isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1:
            small = node.body[0]
            if isinstance(small, cst.Assign):
                return (syntax.reads(small) - _inside(small)) | self._written
            if isinstance(small, cst.AnnAssign):
                value = read_freely(small.value) if small.value is not None else set()
                return value | self._written
            return read_freely(small)
        return _read_first(node)

    @cached_property
    def follows(self) -> set[str]:
        """The variables that are read for more than their shape, which has no gradient."""
        return self.reads - _read_for_shape(self._nodes)

    @cached_property
    def affects(self) -> set[str]:
        """Whose object may keep what it is handed: ``net.remember(x)`` as a statement, of which nothing is read."""
        match self.node:
            case cst.SimpleStatementLine(
                body=[cst.Expr(cst.Call(func=cst.Attribute(value=held) as func))]
            ) if not _is_harmless(func):
                return {_root(held)} - {"", *_PURE_ROOTS}
        return set()

    @cached_property
    def keeps(self) -> bool:
        """Whether what is bound may keep what it was, in whole or in part."""
        if self._written & self.rebound or self._written:
            return True
        if isinstance(self.node, cst.With):
            return any(Line(one).keeps for one in self.node.body.body)
        return not isinstance(self.node, (cst.SimpleStatementLine, cst.FunctionDef))

    @cached_property
    def surely(self) -> set[str]:
        """The variables that are bound whatever way the statement goes."""
        return _surely(self.node)

    @cached_property
    def may_move(self) -> bool:
        """Whether it can become a line of a function."""
        if isinstance(self.node, (cst.If, cst.While, cst.For, cst.With, cst.SimpleStatementLine)):
            leaving: tuple[type, ...] = _LEAVING
            if isinstance(self.node, (cst.While, cst.For)):
                leaving = _LEAVING[:-2]
            if any(isinstance(one, leaving) for one in self._nodes):
                return False
        elif not isinstance(self.node, cst.FunctionDef):
            return False
        return not self._writes_attributes and not any(
            isinstance(one, (cst.Import, cst.ImportFrom)) for one in self._nodes
        )

    @property
    def _writes_attributes(self) -> bool:
        """Whether an object keeps what is computed, and would keep it beyond the function."""
        for one in self._nodes:
            written: Any = None
            if isinstance(one, BINDING) and not isinstance(one, (cst.CompFor, cst.Param)):
                written = bound_by(one)
            elif isinstance(one, cst.Call) and isinstance(one.func, cst.Attribute):
                method = one.func.attr.value
                in_place = method.endswith("_") and not method.endswith("__")
                if (in_place and method != "requires_grad_") or method in _FILLING:
                    written = one.func.value
            parts = [written]
            if isinstance(written, (cst.Tuple, cst.List)):
                parts = [element.value for element in written.elements]
            for part in parts:
                while isinstance(part, (cst.Subscript, cst.Call)):
                    part = part.func if isinstance(part, cst.Call) else part.value
                if isinstance(part, cst.Attribute) and not _is_leaf(part):
                    return True
        return False

    @cached_property
    def may_stay(self) -> bool:
        """Whether it may run before lines that stood before it: it neither writes, nor calls what may."""
        if self._written or any(isinstance(one, _LEAVING) for one in self._nodes):
            return False
        for one in self._nodes:
            if isinstance(one, cst.Call):
                root = _root(one.func)
                if isinstance(one.func, cst.Name):
                    if root not in _PLAIN:
                        return False
                elif root not in _PURE_ROOTS and not _is_harmless(one.func):
                    return False
        return True

    def value_of(self, name: str) -> cst.BaseExpression | None:
        """What a variable is assigned, where that is said in so many words."""
        match self.node:
            case cst.SimpleStatementLine(
                body=[cst.Assign([cst.AssignTarget(cst.Name(value=target))], value)]
            ) if target == name:
                return value
        return None


_SHAPE = frozenset("shape dtype device ndim size dim numel".split())


def _read_for_shape(nodes: Iterable[cst.CSTNode]) -> set[str]:
    """The variables that are asked for their shape and nothing else: ``x.shape[0]``, ``x.size(0)``, ``len(x)``."""
    asked: dict[str, int] = {}
    times: dict[str, int] = {}
    for one in nodes:
        node: cst.CSTNode | None = None
        if isinstance(one, cst.Attribute) and one.attr.value in _SHAPE:
            node = one.value
        elif isinstance(one, cst.Call) and len(one.args) == 1 and _is_len(one.func):
            node = one.args[0].value
        if isinstance(node, cst.Name):
            asked[node.value] = asked.get(node.value, 0) + 1
        elif isinstance(one, cst.Name):
            times[one.value] = times.get(one.value, 0) + 1
    return {name for name, often in asked.items() if times.get(name, 0) <= often}


def _is_len(func: cst.BaseExpression) -> bool:
    return isinstance(func, cst.Name) and func.value == "len"


def _is_leaf(target: cst.CSTNode) -> bool:
    """``x.requires_grad = True``, which changes nothing of a tensor that is not computed."""
    return isinstance(target, cst.Attribute) and target.attr.value == "requires_grad"


_HARMLESS = frozenset(
    "detach clone requires_grad_ size dim numel float double to type new_zeros new_ones".split()
)


def _is_harmless(func: cst.BaseExpression) -> bool:
    """Whether it is a method that tensors have and modules, if they do, do no harm by."""
    if not isinstance(func, cst.Attribute) or func.attr.value not in _HARMLESS:
        return False
    inner = func.value
    return _is_harmless(inner.func) if isinstance(inner, cst.Call) else isinstance(inner, cst.Name)


def _root(node: Any) -> str:
    while isinstance(node, (cst.Subscript, cst.Attribute, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) else ""


class Lines:
    """The lines of a block up to a place."""

    def __init__(self, body: Sequence[Any], place: int) -> None:
        self._lines = [Line(node) for node in body[:place]]

    def __getitem__(self, place: int) -> Line:
        return self._lines[place]

    def bound_at(self, name: str) -> int | None:
        """Where a variable is bound last."""
        for place in range(len(self._lines) - 1, -1, -1):
            if name in self._lines[place].binds:
                return place
        return None

    def dependent(self, inputs: Sequence[str]) -> set[int] | None:
        """The lines that read what is computed from some variables; None where these are computed from one another."""
        places = {name: self.bound_at(name) for name in inputs}
        held = {name for name, place in places.items() if place is None}
        found: set[int] = set()
        for place, line in enumerate(self._lines):
            depends = bool(line.follows & held)
            own = {name for name, at in places.items() if at == place}
            if own:
                if depends or line.binds != own or line.node is None or line.keeps:
                    return None
                held |= own
            elif depends:
                found.add(place)
                held |= line.binds | line.affects
            elif not line.keeps:
                held -= line.binds
        return found

    def leading(
        self, wanted: Iterable[str], dependent: set[int], inputs: Sequence[str]
    ) -> list[int]:
        """The dependent lines that lead to some variables."""
        needed = set(wanted) - set(inputs)
        made: set[str] = set()
        found: list[int] = []
        for place in range(len(self._lines) - 1, -1, -1):
            line = self._lines[place]
            begun = line.binds <= made and not line.keeps  # ``out = []``, ``out = 0``
            if not (line.binds | line.affects) & needed:
                continue
            if place not in dependent and not begun:
                if not line.keeps:  # what it binds is read as it stands around the function
                    needed -= line.binds
                continue
            found.append(place)
            made |= line.binds
            if not line.keeps:
                needed -= line.binds
            needed |= line.reads - set(inputs)
        return found[::-1]

    def are_same(self, free: set[str], taken: Sequence[int], at: int) -> bool:
        """Whether what a function reads of its surroundings is still what its lines read where they stood."""
        first = taken[0] if taken else at
        for place in range(first, min(at, len(self._lines))):
            line = self._lines[place]
            if place in taken or not line.binds & free:
                continue
            earlier = {n for i in taken if i < place for n in self._lines[i].reads}
            if line.keeps or earlier & line.binds & free:
                return False
            later = [i for i in range(place + 1, at) if i not in taken]
            if any(self._lines[i].binds & line.binds & free for i in later):
                return False
        return True

    def bind_first(self, taken: Sequence[int], inputs: Sequence[str]) -> bool:
        """Whether the lines bind each of their variables before they read it, as a function must."""
        known = set(inputs)
        every = {n for i in taken for n in self._lines[i].binds}
        for place in taken:
            line = self._lines[place]
            if line.reads & (every - known):
                return False
            known |= line.surely
        return True

    def surely(self, taken: Iterable[int]) -> set[str]:
        """The variables that some lines bind whatever way they go."""
        return {name for place in taken for name in self._lines[place].surely}
