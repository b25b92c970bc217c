"""Words for lists that may lose what they hold: ``self.layers.pop()``, ``del head[0]``, ``blocks[:] = …``.

By name alone, and over all files of a project: a list that is called otherwise keeps what it was made with.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrator.python_tree import children

_EMPTYING = frozenset("pop popleft popitem clear remove __delitem__".split())
_PLAIN_BASES = frozenset("Module object".split())


def emptied(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The last names of the containers that a file may take something out of, also under another name.

    Args:
      nodes: all nodes of the file.
    """
    found = {word for node in nodes if type(node) in _SHRINKING for word in _shrinks(node)}
    if not found:
        return frozenset()
    handed: list[tuple[set[str], ast.AST]] = []
    calls: dict[str, list[ast.expr]] = {}
    functions: list[tuple[str, set[str]]] = []
    for node in nodes:
        if isinstance(node, ast.Assign):
            handed.append(({w for t in node.targets for w in _words(t)}, node.value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            handed.append((set(_words(node.target)), node.iter))
        elif isinstance(node, ast.Call):
            calls.setdefault(_word(node.func), []).extend(node.args)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            every = (*node.args.posonlyargs, *node.args.args)
            functions.append((node.name, {a.arg for a in every}))
    known = -1
    while len(found) > known:
        known = len(found)
        for bound, value in handed:
            if bound & found:
                found |= set(_words(value))
        for name, params in functions:
            if params & found:
                found |= {w for given in calls.get(name, ()) for w in _words(given)}
    return frozenset(found)


def replaced(tree: ast.AST, nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names of attributes that a file gives to objects of classes which it need not define.

    Args:
      nodes: all nodes of the file.
    """
    found = set[str]()
    for one in nodes:
        if type(one) is ast.Call and _word(one.func) in ("setattr", "delattr"):
            texts = [a.value for a in one.args if isinstance(a, ast.Constant)]
            found |= {text for text in texts if isinstance(text, str)}
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, derived = waiting.pop()
        if isinstance(node, ast.stmt):
            for target in _targets(node):
                if isinstance(target, ast.Attribute) and (derived or not _is_self(target)):
                    found.add(target.attr)
            if isinstance(node, ast.ClassDef):
                derived = derived or any(_word(base) not in _PLAIN_BASES for base in node.bases)
        # no statement stands in an expression
        waiting += [(n, derived) for n in children(node) if not isinstance(n, ast.expr)]
    return frozenset(found)


_SHRINKING = (ast.Call, ast.Delete, ast.Assign)


def _shrinks(node: ast.AST) -> Iterator[str]:
    """What a node takes something out of."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _EMPTYING:
            yield _word(node.func.value)
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            if not isinstance(target, ast.Name):
                yield _word(target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
                yield _word(target.value)


def _targets(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, (ast.AnnAssign, ast.AugAssign)) else []


def _is_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _word(node: ast.AST) -> str:
    """``layers`` of ``self.layers``, ``layers[0]`` and ``self.layers._modules``."""
    while isinstance(node, (ast.Subscript, ast.Call)) or (
        isinstance(node, ast.Attribute) and node.attr == "_modules"
    ):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _words(node: ast.AST) -> Iterator[str]:
    """The last names of what an expression is made of: ``layers`` and ``n`` of ``list(self.layers)[n:]``."""
    if isinstance(node, ast.Attribute):
        yield _word(node)
        if isinstance(node.value, (ast.Name, ast.Attribute)):
            return
    elif isinstance(node, ast.Name):
        yield node.id
    for child in children(node):
        yield from _words(child)
