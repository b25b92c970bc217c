"""Words for the tensors that classes register, and for the attributes that a file gives new values.

By name alone, and over all files of a project: a mixin assigns what a class of another file registers as its buffer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from migrator.python_tree import walk

ANY = "*"
"""Stands for what only a run tells of the name of an attribute, and for a class that is not known."""
RUNNING = frozenset({"running_mean", "running_var", "num_batches_tracked"})
"""What layers of torch that normalize register as buffers."""
_MAKES = frozenset({"Parameter", "Buffer"})
_SETS = frozenset({"setattr", "__setattr__"})
_FILLED = re.compile(r"%[-#0-9.]*[a-z]|\{[^}]*\}")
_REGISTERS = frozenset({"register_buffer", "register_parameter"})


def registered(nodes: Sequence[ast.AST], text: str) -> list[list[str]]:
    """Pairs of a class and the name of a parameter or buffer that it registers; ANY for what is registered elsewhere.

    Args:
      nodes: all nodes of the file.
      text: the file.
    """
    if not any(word in text for word in (*_MAKES, *_REGISTERS)):
        return []
    found: dict[ast.AST, str] = {}
    for node in nodes:
        if type(node) is ast.ClassDef:
            for inner in walk(node):
                found[inner] = node.name  # an inner class comes later
    pairs = {
        (found.get(node, ANY) if of_self else ANY, name)
        for node in nodes
        for name, of_self in _registered(node)
    }
    return sorted(map(list, pairs))


def _registered(node: ast.AST) -> Iterator[tuple[str, bool]]:
    if type(node) is ast.Call and type(node.func) is ast.Attribute:
        if node.func.attr in _REGISTERS:
            given = [*node.args, *(one.value for one in node.keywords if one.arg == "name")]
            yield _like(given[0] if given else None), _is_self(node.func.value)
    elif type(node) in (ast.Assign, ast.AnnAssign) and node.value is not None:  # type: ignore[attr-defined]
        if any(_makes(part) for part in walk(node.value)):  # type: ignore[attr-defined]
            targets = node.targets if type(node) is ast.Assign else [node.target]  # type: ignore[attr-defined]
            for target in targets:
                if type(target) is ast.Attribute:
                    yield target.attr, _is_self(target.value)


def _like(name: ast.AST | None) -> str:
    """A name that is written out, or what it is like: ``mask_*`` of ``f"mask_{i}"``, ``*_u`` of ``name + "_u"``."""
    if isinstance(name, ast.Constant):
        return name.value if isinstance(name.value, str) else ANY
    if isinstance(name, ast.JoinedStr):
        return "".join(map(_like, name.values))
    if isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add):
        return _like(name.left) + _like(name.right)
    if isinstance(name, ast.BinOp) and isinstance(name.op, ast.Mod):
        return _FILLED.sub(ANY, _like(name.left))
    if isinstance(name, ast.Call) and isinstance(name.func, ast.Attribute):
        return _FILLED.sub(ANY, _like(name.func.value)) if name.func.attr == "format" else ANY
    return ANY


def _makes(node: ast.AST) -> bool:
    return type(node) is ast.Call and _word(node.func) in _MAKES


def _word(node: ast.AST) -> str:
    return node.attr if type(node) is ast.Attribute else getattr(node, "id", "")


def _is_self(node: ast.AST) -> bool:
    return type(node) is ast.Name and node.id == "self"


def bases(nodes: Sequence[ast.AST]) -> list[list[str]]:
    """Pairs of a class and the last name of one of its bases, which is empty where it has none."""
    found = {
        (node.name, _word(base) if base is not None else "")
        for node in nodes
        if type(node) is ast.ClassDef
        for base in (*node.bases, None)
    }
    return sorted(map(list, found))


def assigned(nodes: Sequence[ast.AST]) -> list[str]:
    """The names of attributes that a file gives values, or returns; ANY for names that only a run tells."""
    found = set()
    for node in nodes:
        if type(node) is ast.Attribute and type(node.ctx) is ast.Store:
            found.add(node.attr)
        elif type(node) is ast.Return and type(node.value) is ast.Attribute:
            found.add(node.value.attr)
        elif type(node) is ast.Call and _word(node.func) in _SETS:
            found.update(_texts(node.args) or [ANY])
    return sorted(found)


def _texts(nodes: Sequence[ast.AST]) -> list[str]:
    values = (one.value for one in nodes if isinstance(one, ast.Constant))
    return [one for one in values if isinstance(one, str)]


def kin(pairs: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """For each class those whose attributes its methods may meet in ``self``: its heirs, and what these derive from.

    Args:
      pairs: each class and the last names of its bases.
    """
    above: dict[str, set[str]] = {}
    for name in pairs:
        waiting, seen = [name], {name}
        while waiting:
            new = pairs.get(waiting.pop(), frozenset()) - seen - {""}
            seen |= new
            waiting.extend(new)
        above[name] = seen
    found: dict[str, set[str]] = {}
    for one in above.values():
        for base in one:
            found.setdefault(base, set()).update(one)
    return {name: frozenset(found.get(name, ())) for name in pairs}
