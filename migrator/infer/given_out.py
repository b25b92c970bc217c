"""Words for classes whose objects a file's functions return, ``return Output(logits)``, and whose objects others keep."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def returned(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The last names of what is called for what a function of a file returns, alone or in a tuple.

    Args:
      nodes: all nodes of the file.
    """
    made = _made(nodes)
    given = [node.value for node in nodes if type(node) is ast.Return and node.value is not None]
    found = {word for value in given for word in _called(value)}
    names = {name for value in given for name in _names(value)}
    return frozenset(found.union(*(made[name] for name in names & made.keys())))


def stored(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The last names of what is called, or hinted, for what an attribute or an item is given.

    Args:
      nodes: all nodes of the file.
    """
    made = _made(nodes)
    found: set[str] = set()
    for node in nodes:
        targets: list[ast.expr] = []
        if type(node) is ast.Assign:
            targets = node.targets
        elif type(node) is ast.AnnAssign:
            targets = [node.target]
        if any(type(one) in (ast.Attribute, ast.Subscript) for one in targets):
            for part in ast.walk(node):
                found |= {part.id} if type(part) is ast.Name else set()
                found |= {part.attr} if type(part) is ast.Attribute else set()
    return frozenset(found.union(*(made[name] for name in found & made.keys())))


def _made(nodes: Sequence[ast.AST]) -> dict[str, set[str]]:
    """Names and the last names of what is called for what they are given."""
    made: dict[str, set[str]] = {}
    for node in nodes:
        if type(node) is ast.Assign:
            for target in node.targets:
                if type(target) is ast.Name:
                    made.setdefault(target.id, set()).update(_called(node.value))
    return made


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """A value, or what it is chosen from and made of."""
    if type(value) is ast.IfExp:
        yield from _parts(value.body)
        yield from _parts(value.orelse)
    elif type(value) in (ast.Tuple, ast.List):
        for one in value.elts:  # type: ignore[attr-defined]
            yield from _parts(one)
    else:
        yield value


def _called(value: ast.expr) -> Iterator[str]:
    for part in _parts(value):
        if type(part) is ast.Call:
            func = part.func
            if type(func) in (ast.Name, ast.Attribute):
                yield func.id if type(func) is ast.Name else func.attr  # type: ignore[attr-defined]


def _names(value: ast.expr) -> Iterator[str]:
    for part in _parts(value):
        if type(part) is ast.Name:
            yield part.id
