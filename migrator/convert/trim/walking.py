"""Walks over Python's syntax trees, whose nodes are never changed here but copied."""

from __future__ import annotations

import ast
import copy
from typing import Any

_FIELDS: dict[type, tuple[str, ...]] = {}


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and those below it, in no order that matters; several times faster than ``ast.walk``."""
    found = [node]
    for one in found:  # grows as it goes
        kind = type(one)
        if kind not in _FIELDS:
            _FIELDS[kind] = tuple(
                f for f in kind._fields if f not in ("ctx", "op", "ops", "type_comment", "kind")
            )
        for name in _FIELDS[kind]:
            value = getattr(one, name, None)
            if type(value) is list:
                found += [v for v in value if isinstance(v, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def changed(node: Any, **changes: Any) -> Any:
    """A copy of a node with other fields, marked as no longer what the text says."""
    made = copy.copy(node)
    for kept in ("stored", "asked"):
        made.__dict__.pop(kept, None)
    for name, value in changes.items():
        setattr(made, name, value)
    made.changed = True
    return made


def stored(node: Any) -> frozenset[str]:
    """The names that a statement binds in the scope it stands in; kept with the node, which never changes."""
    found: frozenset[str] | None = node.__dict__.get("stored")
    if found is None:
        found = node.stored = frozenset(_stored(node))
    return found


def _stored(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    found = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store | ast.Del):
            found.append(child.id)
        elif not isinstance(
            child, ast.Lambda | ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp
        ):
            found += stored(child)
    return found


def asked(node: Any) -> frozenset[str]:
    """The attributes that a definition asks for; kept with the node."""
    found: frozenset[str] | None = node.__dict__.get("asked")
    if found is None:
        found = node.asked = frozenset(n.attr for n in walk(node) if isinstance(n, ast.Attribute))
    return found
