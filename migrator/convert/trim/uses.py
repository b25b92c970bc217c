"""What a file and its helpers ask of the helpers it carries."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from migrator.convert.trim.integers import integers
from migrator.convert.trim.walking import add, kept
from migrator.python_tree import fields, walk

Definition = ast.FunctionDef | ast.ClassDef
_BY_NAME = ("getattr", "setattr", "hasattr", "delattr", "vars")


class Site(NamedTuple):
    """A call of a helper.

    Attributes:
      own: it stands in the file's own code, which stays as it is.
      open: ``functools.partial(helper, …)``: the parameters that it does not name are given later, or not.
    """

    call: ast.Call
    own: bool
    open: bool = False


@dataclass
class Uses:
    """Who calls what, and which helpers are used in ways that do not tell how they are called.

    Attributes:
      calls: helper → its calls; ``Class.method`` for calls through ``self`` and ``super()``.
      values: helpers that are handed on, subclassed by the file, or called with starred arguments.
      mentioned: names of attributes and strings in the file's own code.
      methods: how often each attribute is read in the helpers, and how often as ``self.name(…)``.
      dynamic: attributes are asked for, or layers built, by names and types that only a run knows.
      by_name: helpers that ask ``self`` for attributes by names that they compute.
    """

    names: frozenset[str]
    calls: dict[str, list[Site]] = field(default_factory=dict)
    values: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    methods: dict[str, int] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    read: dict[str, int] = field(default_factory=dict)
    dynamic: bool = False
    written: set[str] = field(default_factory=set)
    """Attributes that the file's own code assigns."""
    by_name: set[str] = field(default_factory=set)
    keywords: set[str] = field(default_factory=set)
    """Names of arguments that the file's own code gives to others than helpers."""

    def site(self, name: str, call: ast.Call, own: bool, is_open: bool = False) -> None:
        """Take in a call of a helper, or of a method of one."""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(
            k.arg is None for k in call.keywords
        ):
            self.values.add(name)
        self.calls.setdefault(name, []).append(Site(call, own, is_open))


class Together:
    """What several pieces of code use: the file's own first, which alone mentions and writes attributes."""

    def __init__(self, parts: Sequence[Uses]) -> None:
        self._parts = parts
        self._families: dict[str, set[str]] = {}
        own = parts[0]
        self.names, self.mentioned, self.written = own.names, own.mentioned, own.written
        self.keywords = own.keywords
        self.dynamic = any(part.dynamic for part in parts)
        self.values = set[str]().union(*(part.values for part in parts))
        self.by_name = set[str]().union(*(part.by_name for part in parts))
        self.calls: dict[str, list[Site]] = {}
        self.bases: dict[str, list[str]] = {}
        for part in parts:
            for name, sites in part.calls.items():
                self.calls[name] = self.calls[name] + sites if name in self.calls else sites
            self.bases.update(part.bases)

    def methods(self, name: str) -> int:
        """How often an attribute is read, or called as ``self.name(…)``."""
        return sum(part.methods.get(name, 0) for part in self._parts)

    def read(self, name: str) -> int:
        """How often a helper is read."""
        return sum(part.read.get(name, 0) for part in self._parts)

    def has_subclass(self, name: str) -> bool:
        """Whether a helper inherits from a class."""
        return any(name in bases for bases in self.bases.values())

    def family(self, name: str) -> set[str]:
        """A class with the helpers it inherits from and those that inherit from it."""
        if name not in self._families:
            self._families[name] = self._family(name)
        return self._families[name]

    def _family(self, name: str) -> set[str]:
        found, queue = {name}, [name]
        while queue:
            one = queue.pop()
            near = [b for b in self.bases.get(one, ()) if b in self.names]
            near += [c for c, bases in self.bases.items() if one in bases]
            queue += [n for n in near if n not in found]
            found.update(near)
        return found


# --- the file's own code ---------------------------------------------------------------------------------------------


def used_by_file(tree: ast.Module, names: frozenset[str]) -> tuple[Uses, set[str]]:
    """What the file's own code uses, and every name that stands in it."""
    found = _File(names)
    found.proven = integers(tree)
    found.add(tree)
    return found.uses, found.every


class _File:
    def __init__(self, names: frozenset[str]) -> None:
        self.names = names
        self.uses = Uses(names)
        self.every: set[str] = set()
        self.mention = self.uses.mentioned.add
        self.integers: set[str] = set()
        """The parameters of the function at hand that are integers."""
        self.proven: dict[int, set[str]] = {}
        """Those of all functions."""

    def add(self, node: ast.AST) -> None:
        """Take in what a piece of code uses."""
        special = _OWN.get(type(node))
        if special is not None:
            special(self, node)
        else:
            self.children(node)

    def children(self, node: ast.AST) -> None:
        for name in fields(type(node)):
            value = getattr(node, name, None)
            if type(value) is list:
                self.each(value)
            elif isinstance(value, ast.AST):
                self.add(value)

    def each(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if isinstance(node, ast.AST):
                self.add(node)

    def name(self, node: ast.Name) -> None:
        self.every.add(node.id)
        if node.id in self.names:
            self.uses.values.add(node.id)
            add(self.uses.read, {node.id: 1})

    def constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.mention(node.value)
            if node.value in self.names:
                self.uses.values.add(node.value)

    def attribute(self, node: ast.Attribute) -> None:
        if _asks_type(node.value):
            self.every.add("type")
            self.add(node.value.args[0])  # type: ignore[attr-defined]
            return
        add(self.uses.methods, {node.attr: 1})
        if node.attr == "__class__":
            self.uses.values |= self.names
        self.mention(node.attr)
        if not isinstance(node.ctx, ast.Load):
            self.uses.written.add(node.attr)
        self.add(node.value)

    def text(self, node: ast.JoinedStr) -> None:
        """Where the parts of an f-string stand, Python 3.11 does not say: calls there cannot be changed."""
        self.children(node)
        self.uses.values |= {n.id for n in walk(node) if isinstance(n, ast.Name)} & self.names

    def compare(self, node: ast.Compare) -> None:
        for part in [node.left, *node.comparators]:
            if _asks_type(part):  # type(layer) == Linear, type(layer).__name__: none is built
                self.every.add("type")
                part = part.args[0]  # type: ignore[attr-defined]
            self.add(part)

    def annotation(self, node: ast.AST | None) -> None:
        """A helper in an annotation is only named."""
        for one in walk(node) if node is not None else ():
            if isinstance(one, ast.Name):
                self.every.add(one.id)
                if one.id in self.names:
                    add(self.uses.read, {one.id: 1})

    def argument(self, node: ast.arg) -> None:
        self.annotation(node.annotation)

    def declaration(self, node: ast.AnnAssign) -> None:
        self.annotation(node.annotation)
        self.each((node.target, node.value))

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.annotation(node.returns)
        self.each((*node.decorator_list, node.args))
        outer, self.integers = self.integers, self.proven.get(id(node), set())
        self.each(node.body)
        self.integers = outer

    def definition(self, node: ast.ClassDef) -> None:
        self.each((*node.bases, *node.decorator_list, *node.keywords, *node.body))

    def call(self, node: ast.Call) -> None:
        func = node.func
        given: list[ast.AST] = [*node.args, *node.keywords]
        name = func.id if isinstance(func, ast.Name) else ""
        self.every.add(name)
        for argument in (*node.args, *(k.value for k in node.keywords)):
            if isinstance(argument, ast.Name) and argument.id in self.integers:
                argument.is_integer = True  # type: ignore[attr-defined]
        if name in self.names:
            self.uses.site(name, node, True)
            add(self.uses.read, {name: 1})
        elif (bound_later := _partial(node)) is not None and bound_later[0] in self.names:
            name, made = bound_later
            self.every.add(name)
            self.uses.site(name, made, True, is_open=True)
            add(self.uses.read, {name: 1})
            self.add(func)
            given = [*node.keywords]
            node = made
        elif name == "isinstance" and len(node.args) == 2:
            self.annotation(node.args[1])
            given = [node.args[0]]
        elif name in _BY_NAME:
            if not _is_named(node):
                self.uses.dynamic = True
            elif name != "getattr":
                self.uses.written.add(str(node.args[1].value))  # type: ignore[attr-defined]
        else:
            if name in ("globals", "eval", "exec") or _asks_type(node):
                # globals()[name](…) or type(layer)(…) may build any of them
                self.uses.values |= self.names
            self.add(func)
        if not (isinstance(node.func, ast.Name) and node.func.id in self.names):
            self.uses.keywords.update(k.arg or "**" for k in node.keywords)
        self.each(given)


def _partial(node: ast.Call) -> tuple[str, ast.Call] | None:
    """``functools.partial(helper, size=2)`` as ``helper(size=2)``, with the helper's name."""
    func = node.func
    name = func.id if isinstance(func, ast.Name) else ""
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        name = f"{func.value.id}.{func.attr}"
    if name not in ("partial", "functools.partial") or len(node.args) != 1:
        return None
    if not isinstance(node.args[0], ast.Name) or any(k.arg is None for k in node.keywords):
        return None
    return node.args[0].id, ast.Call(node.args[0], [], node.keywords)


_OWN: dict[type, Callable[[_File, Any], None]] = {
    ast.Name: _File.name,
    ast.Constant: _File.constant,
    ast.Attribute: _File.attribute,
    ast.JoinedStr: _File.text,
    ast.Compare: _File.compare,
    ast.Call: _File.call,
    ast.arg: _File.argument,
    ast.AnnAssign: _File.declaration,
    ast.FunctionDef: _File.function,
    ast.AsyncFunctionDef: _File.function,
    ast.ClassDef: _File.definition,
}


# --- helpers ---------------------------------------------------------------------------------------------------------


def used_by_helper(node: ast.stmt, names: frozenset[str]) -> Uses:
    """What one helper uses of all."""
    seen, found = _outside(node), Uses(names)
    for name, call in seen.sites:
        if name in names:
            found.site(name, call, False)
            add(found.read, {name: 1})
    for key, call in seen.own_sites:
        found.site(key, call, False)
    for name, count in seen.plain.items():
        if name in names:
            found.values.add(name)
            add(found.read, {name: count})
    for name, count in seen.named.items():
        if name in names:
            add(found.read, {name: count})
    found.methods, found.bases = seen.methods, seen.bases
    found.dynamic, found.by_name = seen.dynamic, seen.by_name
    if isinstance(node, Definition) and node.decorator_list:
        found.values.add(node.name)
    return found


@dataclass
class _Seen:
    """What a piece of a helper asks for, whichever helpers there are.

    Attributes:
      inside: whether it stands in a class.
      sites: calls by name.
      own_sites: calls through ``self`` and ``super()``: by the method's name, behind its class's where that is known.
      plain: how often a name is read elsewhere; ``named``: in annotations and the like.
    """

    inside: bool
    sites: list[tuple[str, ast.Call]] = field(default_factory=list)
    own_sites: list[tuple[str, ast.Call]] = field(default_factory=list)
    plain: dict[str, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    methods: dict[str, int] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    dynamic: bool = False
    by_name: set[str] = field(default_factory=set)

    def add(self, node: ast.AST) -> None:
        """Take in what a piece of code asks for."""
        if isinstance(node, ast.stmt):
            self.join((_within if self.inside else _outside)(node))
        else:
            self.enter(node)

    def join(self, other: _Seen) -> None:
        """Take in what a statement asks for."""
        self.sites += other.sites
        self.own_sites += other.own_sites
        self.dynamic = self.dynamic or other.dynamic
        self.by_name |= other.by_name
        self.bases.update(other.bases)
        add(self.plain, other.plain)
        add(self.named, other.named)
        add(self.methods, other.methods)

    def enter(self, node: ast.AST) -> None:
        """Take in a node of no statement but this one."""
        if isinstance(node, ast.Name):
            add(self.plain, {node.id: 1})
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.ClassDef):
            self._definition(node)
        elif isinstance(node, ast.arg):
            self._annotation(node.annotation)
        elif isinstance(node, ast.AnnAssign):
            self._annotation(node.annotation)
            self._each((node.target, node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._annotation(node.returns)
            self._each((*node.decorator_list, node.args, *node.body))
        elif isinstance(node, ast.Compare | ast.Attribute) and any(map(_asks_type, _parts(node))):
            for part in _parts(node):  # type(layer) == Linear, type(layer).__name__: none is built
                self._each([part.args[0]] if _asks_type(part) else [part])  # type: ignore[attr-defined]
        else:
            if isinstance(node, ast.Attribute):
                add(self.methods, {node.attr: 1})
            self._each(ast.iter_child_nodes(node))

    def _each(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.add(node)

    def _annotation(self, node: ast.AST | None) -> None:
        """A helper in an annotation is only named."""
        for one in walk(node) if node is not None else ():
            if isinstance(one, ast.Name):
                add(self.named, {one.id: 1})

    def _definition(self, node: ast.ClassDef) -> None:
        body = _Seen(inside=True)
        body._each((*node.decorator_list, *node.keywords, *node.body))
        if _is_outside(node.bases):  # what is above it is none of the helpers
            body.own_sites = [(name, call) for name, call in body.own_sites if not _is_above(call)]
        for base in node.bases:
            if isinstance(base, ast.Name):
                self.bases.setdefault(node.name, []).append(base.id)
                add(self.named, {base.id: 1})
        for name, _ in body.own_sites:
            if "." not in name:
                add(body.methods, {f"self.{name}": 1})
        body.own_sites = [
            (name if "." in name else f"{node.name}.{name}", call) for name, call in body.own_sites
        ]
        body.by_name = {name or node.name for name in body.by_name}
        self.join(body)

    def _call(self, node: ast.Call) -> None:
        func = node.func
        given: list[ast.AST] = [*node.args, *node.keywords]
        if isinstance(func, ast.Name):
            self.sites.append((func.id, node))
            if func.id == "isinstance" and len(node.args) == 2:
                self._annotation(node.args[1])
                given = [node.args[0]]
            elif func.id in _BY_NAME and not _is_named(node):
                if node.args and isinstance(node.args[0], ast.Name) and node.args[0].id == "self":
                    self.by_name.add("")
                else:
                    self.dynamic = True
        elif isinstance(func, ast.Attribute) and self.inside:
            self._own_call(node, func)
        else:
            self.add(func)
        self._each(given)

    def _own_call(self, node: ast.Call, func: ast.Attribute) -> None:
        """``self.method(…)`` and ``super().method(…)`` within a helper."""
        value = func.value
        is_self = isinstance(value, ast.Name) and value.id == "self"
        is_super = (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "super"
        )
        add(self.methods, {func.attr: 1})
        if is_self or is_super:
            self.own_sites.append((func.attr, node))
        else:
            self._each([value])


@kept
def _outside(node: ast.stmt) -> _Seen:
    """What a statement outside of classes asks for."""
    found = _Seen(inside=False)
    found.enter(node)
    return found


@kept
def _within(node: ast.stmt) -> _Seen:
    """What a statement of a class asks for."""
    found = _Seen(inside=True)
    found.enter(node)
    return found


def _is_outside(bases: list[ast.expr]) -> bool:
    """``nnx.Linear``; ``nnx.Module`` is the base of mixins as well, above which another helper may be."""
    return len(bases) == 1 and isinstance(bases[0], ast.Attribute) and bases[0].attr != "Module"


def _is_above(call: ast.Call) -> bool:
    """``super().method(…)``"""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name)


def _is_named(call: ast.Call) -> bool:
    return len(call.args) > 1 and isinstance(call.args[1], ast.Constant)


def _asks_type(node: ast.AST) -> bool:
    """``type(layer)``"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "type"
        and len(node.args) == 1
    )


def _parts(node: ast.Compare | ast.Attribute) -> list[ast.expr]:
    return [node.value] if isinstance(node, ast.Attribute) else [node.left, *node.comparators]


def bound(call: ast.Call, params: list[str]) -> dict[str, ast.expr]:
    """The arguments of a call by parameter."""
    found = dict(zip(params, call.args, strict=False))
    found.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    return found


def without(call: ast.Call, params: list[str], gone: set[str]) -> ast.Call:
    """A call without the arguments of some parameters."""
    args = [a for i, a in enumerate(call.args) if i >= len(params) or params[i] not in gone]
    keywords = [k for k in call.keywords if k.arg not in gone]
    return ast.Call(call.func, args, keywords)
