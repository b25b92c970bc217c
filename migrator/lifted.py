"""Functions inside methods that write to what they are handed, and read nothing around them: functions of the file.

``def uniform(size, tensor): tensor.data.uniform_(…)`` inside ``reset_parameters`` initialises parameters like a function
of the file does.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by

_NESTED = re.compile(r"^(?:    {4}|\t\t)[ \t]*def \w+\(", re.MULTILINE)
_WRITES = re.compile(r"\w_\(")


def beside_classes(tree: cst.Module, text: str) -> cst.Module:
    """A file whose functions that only initialise stand beside the classes that use them."""
    if not _NESTED.search(text) or not _WRITES.search(text):
        return tree
    taken = _names_of_file(tree)
    body: list[Any] = []
    for line in tree.body:
        if isinstance(line, cst.ClassDef) and isinstance(line.body, cst.IndentedBlock):
            lifted: list[cst.FunctionDef] = []
            methods = [_method(one, lifted, taken, tree) for one in line.body.body]
            if lifted:
                line = syntax.changed(line, body=syntax.changed(line.body, body=methods))
                lifted[0] = syntax.changed(lifted[0], leading_lines=line.leading_lines)
                body += lifted
                line = syntax.changed(line, leading_lines=_APART)
        body.append(line)
    return syntax.changed(tree, body=body) if len(body) > len(tree.body) else tree


_APART = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]


def _names_of_file(tree: cst.Module) -> set[str]:
    """All names that the file uses outside of functions inside methods, so that none changes its meaning."""
    found: set[str] = set()
    for line in tree.body:
        if isinstance(line, (cst.FunctionDef, cst.ClassDef)):
            found.add(line.name.value)
        else:
            found |= set(syntax.names(line))
    return found


def _method(node: Any, lifted: list[cst.FunctionDef], taken: set[str], tree: cst.Module) -> Any:
    """A method without the functions that are taken out of it."""
    if not isinstance(node, cst.FunctionDef) or not isinstance(node.body, cst.IndentedBlock):
        return node
    lines = list(node.body.body)
    for line in lines:
        if isinstance(line, cst.FunctionDef) and _may_stand_apart(line, node, taken):
            name = line.name.value
            if syntax.names(tree).get(name) != syntax.names(node).get(name):
                continue  # elsewhere it means something else
            rest = [one for one in lines if one is not line]
            if not rest:
                continue
            lines = rest
            taken.add(line.name.value)
            lifted.append(syntax.changed(line, leading_lines=_APART if lifted else []))
    if len(lines) == len(node.body.body):
        return node
    return syntax.changed(node, body=syntax.changed(node.body, body=lines))


def _may_stand_apart(inner: cst.FunctionDef, method: cst.FunctionDef, taken: set[str]) -> bool:
    name = inner.name.value
    if name in taken or inner.decorators or inner.asynchronous is not None:
        return False
    params = syntax.parameters(inner)
    if not params or any(one.default is not None for one in params.values()):
        return False
    if not _writes(inner, set(params)):
        return False
    nodes = list(syntax.walk(inner.body))
    if any(
        isinstance(one, (cst.Nonlocal, cst.Global, cst.FunctionDef, cst.ClassDef)) for one in nodes
    ):
        return False
    if any(isinstance(one, cst.Name) and one.value in ("super", "__class__") for one in nodes):
        return False
    around = _bound(method) | set(syntax.parameters(method))
    free = set(syntax.names(inner.body)) - _bound(inner) - set(params)
    if free & around:
        return False
    uses = calls = 0
    for one in syntax.walk(method):
        if isinstance(one, cst.Name) and one.value == name:
            uses += 1
        if isinstance(one, cst.Call) and isinstance(one.func, cst.Name):
            calls += one.func.value == name
    return uses == calls + 1


def _bound(function: cst.FunctionDef) -> set[str]:
    """What a function binds, its inner functions and what these bind among it."""
    found: set[str] = set()
    for node in syntax.walk(function.body):
        if isinstance(node, BINDING):
            found |= set(bound(bound_by(node)))
        elif isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            found.add(node.name.value)
        elif isinstance(node, cst.ImportAlias):
            target: Any = node.asname.name if node.asname else node.name
            while isinstance(target, cst.Attribute):
                target = target.value
            found.add(target.value)
    return found


def _writes(inner: cst.FunctionDef, params: set[str]) -> bool:
    """Whether a function writes to a parameter: ``tensor.data.uniform_()``, ``init.zeros_(w)``."""
    for node in syntax.walk(inner.body):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if not node.func.attr.value.endswith("_"):
                continue
            held: cst.BaseExpression = node.func.value
            while isinstance(held, (cst.Attribute, cst.Subscript)):
                held = held.value
            first = node.args[0].value if node.args else None
            for one in (held, first):
                if isinstance(one, cst.Name) and one.value in params:
                    return True
    return False
