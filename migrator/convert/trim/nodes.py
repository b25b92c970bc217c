"""Questions about the syntax trees of helpers, and trees with parts exchanged."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.trim import fold, walking
from migrator.convert.trim.known import INTEGER, Known, is_own
from migrator.convert.trim.uses import Definition
from migrator.convert.trim.walking import add, changed, exchanged, kept, names, names_of
from migrator.python_tree import walk


def has_method(node: ast.ClassDef, method: str) -> bool:
    return any(isinstance(s, ast.FunctionDef) and s.name == method for s in node.body)


def is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def bound_by(node: ast.stmt) -> set[str]:
    """The names that a statement of a module or class binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return {n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)}


def completed_by(node: ast.stmt) -> set[str]:
    """The names that a statement adds to: ``f.defjvp(g)``, or a definition under ``@f.defjvp``."""
    if isinstance(node, Definition):
        return names_of(node.decorator_list)
    return set() if bound_by(node) else set(names(node))


def parameters(function: ast.FunctionDef, owner: ast.ClassDef | None = None) -> list[str]:
    """The positional parameters, without ``self``."""
    found = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return found[1:] if owner is not None else found


def keyword_only(function: ast.FunctionDef) -> list[str]:
    return [a.arg for a in function.args.kwonlyargs]


def defaults_of(function: ast.FunctionDef) -> dict[str, ast.expr]:
    args = function.args
    every = [a.arg for a in (*args.posonlyargs, *args.args)]
    found = dict(zip(reversed(every), reversed(args.defaults), strict=False))
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if default is not None:
            found[arg.arg] = default
    return found


def fewer_parameters(args: ast.arguments, gone: set[str]) -> ast.arguments:
    """A signature without some parameters."""
    if not gone:
        return args
    plain = [*args.posonlyargs, *args.args]
    padded: list[ast.expr | None] = [None] * (len(plain) - len(args.defaults))
    padded += args.defaults
    kept = [(a, d) for a, d in zip(plain, padded, strict=True) if a.arg not in gone]
    keywords = [
        (a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if a.arg not in gone
    ]
    return ast.arguments(
        posonlyargs=[],
        args=[a for a, _ in kept],
        vararg=args.vararg,
        kwonlyargs=[a for a, _ in keywords],
        kw_defaults=[d for _, d in keywords],
        kwarg=args.kwarg,
        defaults=[d for _, d in kept if d is not None],
    )


def values_of(found: list[ast.expr | None]) -> tuple[Any, ...] | None:
    """The different values of expressions that are all constants or integers."""
    values: list[Any] = []
    for one in found:
        if isinstance(one, ast.Name) and getattr(one, "is_integer", False):
            values += [] if INTEGER in values else [INTEGER]
            continue
        if not isinstance(one, ast.Constant):
            return None
        if not any(type(v) is type(one.value) and v == one.value for v in values):
            values.append(one.value)
    return tuple(values)


def reads(node: ast.AST, name: str) -> bool:
    return name in names(node)


def is_read_inside(function: ast.FunctionDef, name: str) -> bool:
    """Whether a parameter that is bound anew is read in a function within, which sees the last value."""
    stored = [n for s in function.body for n in walking.stored(s)]
    if name not in stored:
        return False
    inner = [n for n in walk(function) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    return any(reads(n, name) for n in inner if n is not function)


def reads_unbound(body: list[ast.stmt], name: str) -> bool:
    """Whether a name may be read before one of the statements binds it for sure."""
    for one in body:
        if isinstance(one, ast.Assign):
            if reads(one.value, name):
                return True
            if name in walking.stored(one):
                return False
        elif reads(one, name):
            return True
    return False


def is_attribute(node: ast.expr, name: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


@dataclass
class Attributes:
    """How often each attribute is read, is written to ``self`` and to others, and is asked of others than ``self``."""

    loads: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)
    foreign_stores: dict[str, int] = field(default_factory=dict)

    def count(self, node: ast.AST) -> None:
        """Take in a node."""
        if isinstance(node, ast.Attribute):
            load, own = isinstance(node.ctx, ast.Load), is_own(node)
            one = {node.attr: 1}
            if load:
                add(self.loads, one)
            else:
                add(self.stores if own else self.foreign_stores, one)
            if not own:
                add(self.foreign, one)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            add(self.loads, {node.value: 1})
            add(self.foreign, {node.value: 1})

    def join(self, other: Attributes) -> None:
        """Take in those of another piece of code."""
        add(self.loads, other.loads)
        add(self.stores, other.stores)
        add(self.foreign, other.foreign)
        add(self.foreign_stores, other.foreign_stores)


@kept
def _attributes_below(node: ast.stmt) -> Attributes:
    found = Attributes()
    own, inner = walking.parts(node)
    for one in own:
        found.count(one)
    for statement in inner:
        found.join(_attributes_below(statement))
    return found


@kept
def attributes_of(top: ast.stmt) -> Attributes:
    """Those of one helper."""
    below = _attributes_below(top)
    if not isinstance(top, ast.ClassDef):
        return below
    found = Attributes()
    found.join(below)
    for member in top.body:
        if isinstance(member, ast.Assign) or (
            isinstance(member, ast.AnnAssign) and member.value is not None
        ):
            add(found.stores, dict.fromkeys(bound_by(member), 1))
    return found


class Everywhere:
    """The attributes of all helpers, as instances of a family of classes meet them."""

    def __init__(self, family: list[Attributes], others: list[Attributes]) -> None:
        self._family, self._every = family, [*family, *others]

    def loads(self, name: str) -> int:
        """How often it is read."""
        return sum(part.loads.get(name, 0) for part in self._every)

    def foreign(self, name: str) -> int:
        """How often it is asked of others than ``self``."""
        return sum(part.foreign.get(name, 0) for part in self._every)

    def stores(self, name: str) -> int:
        """How often it may be written to instances of the family."""
        own = sum(part.stores.get(name, 0) for part in self._family)
        return own + sum(part.foreign_stores.get(name, 0) for part in self._every)


def assignments(
    owner: ast.ClassDef,
) -> Iterator[tuple[ast.FunctionDef | None, ast.stmt, str, ast.expr]]:
    """What a class and its ``__init__`` assign to attributes, each with its statement."""
    for member in owner.body:
        if isinstance(member, ast.Assign) and len(member.targets) == 1:
            if isinstance(member.targets[0], ast.Name):
                yield None, member, member.targets[0].id, member.value
        elif isinstance(member, ast.FunctionDef) and member.name == "__init__":
            for statement in member.body:
                for target, value in fold.pairs(statement) or ():
                    if isinstance(target, ast.Attribute) and is_attribute(target, target.attr):
                        yield member, statement, target.attr, value


def in_method(node: ast.stmt, known: Known) -> ast.stmt:
    """A method with attributes of ``self`` put in; ``self`` is its own parameter."""
    if not isinstance(node, ast.FunctionDef):
        return node
    if walking.asked(node).isdisjoint(known.attributes) and walking.asked(node).isdisjoint(
        known.attribute_values
    ):
        return node
    body = fold.statements(node.body, known)
    return node if body is node.body else changed(node, body=body or [ast.Pass()])


def substituted(node: Any, calls: Mapping[int, ast.expr]) -> Any:
    """A definition with some calls replaced, by their ids."""
    if calls.keys().isdisjoint(map(id, walking.calls(node))):
        return node
    return exchanged(node, calls)


def one_liners(body: Sequence[ast.stmt]) -> dict[str, ast.FunctionDef]:
    """The functions that are one expression, by name."""
    return {
        one.name: one
        for one in body
        if isinstance(one, ast.FunctionDef)
        and not (one.decorator_list or one.args.vararg or one.args.kwarg or one.args.kwonlyargs)
        and isinstance(one.body[-1], ast.Return)
        and one.body[-1].value is not None
        and all(map(is_docstring, one.body[:-1]))
    }


def without_unread(node: Any) -> Any:
    """A definition without the names that a function of it binds and nothing reads."""
    if isinstance(node, ast.ClassDef):
        body = [without_unread(s) for s in node.body]
        same = all(a is b for a, b in zip(body, node.body, strict=True))
        return node if same else changed(node, body=body)
    if not isinstance(node, ast.FunctionDef):
        return node
    loads = walking.loads(node)
    kept: list[ast.stmt] = []
    for one in node.body:
        if isinstance(one, ast.FunctionDef) and one.name not in loads:
            if not one.decorator_list:  # a decorator may hand it to who asks for it
                continue
        pairs = fold.pairs(one)
        if pairs is not None and isinstance(one, ast.Assign):
            live = [
                (t, v)
                for t, v in pairs
                if not isinstance(t, ast.Name) or t.id in loads or not fold.is_pure(v)
            ]
            kept += [one] if len(live) == len(pairs) else fold.assigned(one, live)
        else:
            kept.append(one)
    same = len(kept) == len(node.body) and all(a is b for a, b in zip(kept, node.body, strict=True))
    return node if same else changed(node, body=kept or [ast.Pass()])
