"""Walks over Python's syntax trees, whose nodes are never changed here but copied.

What is asked of a node is kept with it. The helpers are the same from file to file and are read once, so that only what
a file changes of them is looked at anew.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, wraps
from typing import Any, TypeVar

from migrator.python_tree import children, fields, walk

T = TypeVar("T")
_KEPT = "kept: "


@lru_cache(maxsize=1024)
def parsed(text: str) -> tuple[ast.stmt, ...]:
    """The statements of a helper's text, each with the lines it stands in."""
    lines = text.splitlines()
    body = ast.parse(text).body
    for top in body:
        for node in walk(top):
            if isinstance(node, ast.stmt):
                node.lines = lines  # type: ignore[attr-defined]
    return tuple(body)


def changed(node: Any, **changes: Any) -> Any:
    """A copy of a node with other fields, marked as no longer what the text says."""
    made = copied(node)
    vars(made).update(changes)
    made.changed = True
    return made


def copied(node: Any) -> Any:
    """A copy of a node, of which nothing has been asked yet."""
    kind: Any = type(node)
    made = kind.__new__(kind)
    vars(made).update(
        {name: value for name, value in vars(node).items() if not name.startswith(_KEPT)}
    )
    return made


def kept(question: Callable[[Any], T]) -> Callable[[Any], T]:
    """A question about a node that is answered once."""
    name = f"{_KEPT}{question.__module__}.{question.__name__}"

    @wraps(question)
    def answer(node: Any) -> T:
        content = node.__dict__
        if name in content:
            return content[name]
        found = content[name] = question(node)
        return found

    return answer


@kept
def parts(node: ast.AST) -> tuple[list[ast.AST], list[ast.stmt]]:
    """The nodes of a statement or expression without the statements in it, and those statements."""
    found, inner = [node], list[ast.stmt]()
    for one in found:
        for child in children(one):
            if isinstance(child, ast.stmt):
                inner.append(child)
            else:
                found.append(child)
    return found, inner


@kept
def names(node: ast.AST) -> frozenset[str]:
    """The names that stand in a node."""
    own, inner = parts(node)
    here = frozenset(one.id for one in own if isinstance(one, ast.Name))
    return here.union(*map(names, inner)) if inner else here


def names_of(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that stand in some nodes."""
    return set[str]().union(*map(names, nodes))


@kept
def loads(node: ast.AST) -> dict[str, int]:
    """How often a node reads each name."""
    own, inner = parts(node)
    found: dict[str, int] = {}
    for one in own:
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load):
            found[one.id] = found.get(one.id, 0) + 1
    for statement in inner:
        add(found, loads(statement))
    return found


def add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    """Count more of each; a ``Counter`` is asked for in Python for what it has not yet."""
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


@kept
def asked(node: Any) -> frozenset[str]:
    """The attributes that a node asks for."""
    own, inner = parts(node)
    here = frozenset(one.attr for one in own if isinstance(one, ast.Attribute))
    return here.union(*map(asked, inner)) if inner else here


@kept
def calls(node: ast.AST) -> list[ast.Call]:
    """The calls in a node."""
    own, inner = parts(node)
    found = [one for one in own if isinstance(one, ast.Call)]
    for one in inner:
        found += calls(one)
    return found


@kept
def text(node: ast.AST) -> str:
    """A node as Python writes it."""
    return ast.unparse(node)


@kept
def stored(node: Any) -> frozenset[str]:
    """The names that a statement binds in the scope it stands in."""
    return frozenset(_stored(node))


_APART = (ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)


def _stored(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    found = []
    for child in children(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store | ast.Del):
            found.append(child.id)
        elif isinstance(child, ast.stmt):
            found += stored(child)
        elif not isinstance(child, _APART):
            found += _stored(child)
    return found


def with_arguments(value: Any, given: Mapping[str, ast.expr]) -> Any:
    """A copy of an expression with arguments in the place of parameters."""
    if isinstance(value, ast.Name):
        return given[value.id] if value.id in given else copied(value)
    made = copied(value)
    for name in fields(type(value)):
        part = getattr(value, name, None)
        if isinstance(part, list):
            items = [with_arguments(v, given) if isinstance(v, ast.AST) else v for v in part]
            setattr(made, name, items)
        elif isinstance(part, ast.AST):
            setattr(made, name, with_arguments(part, given))
    return made


def rebuilt(node: Any, visit: Callable[[Any], Any]) -> Any:
    """A node with its children as a function gives them; the node itself where they stay the same."""
    changes: dict[str, Any] = {}
    for name in fields(type(node)):
        value = getattr(node, name, None)
        if isinstance(value, ast.AST):
            new: Any = visit(value)
        elif isinstance(value, list):
            new = [visit(v) if isinstance(v, ast.AST) else v for v in value]
            if all(a is b for a, b in zip(new, value, strict=True)):
                continue
        else:
            continue
        if new is not value:
            changes[name] = new
    return changed(node, **changes) if changes else node


def exchanged(node: Any, made: Mapping[int, ast.expr]) -> Any:
    """A tree with some expressions replaced, by their ids, also within one another."""
    if id(node) in made:
        node = changed(made[id(node)])
    return rebuilt(node, lambda one: exchanged(one, made))
