"""Names for the data of a parameter that is written through them: ``w = up.weight.data; w[0, 0] = 1``.

The name shows the parameter's memory. Flax's arrays have no such names, and the write is one to the parameter itself. So
is ``w = conv.weight`` of what ``torch.nn.init`` is handed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import bound, is_written, with_functions

_NAMED = re.compile(r"^[ \t]*(\w+)\s*=\s*[\w.\[\]]+\.(?:weight|bias)\w*\.data\s*(?:#.*)?$", re.M)
_PARAMETER = re.compile(r"^[ \t]*(\w+)\s*=\s*[\w.\[\]]+\.(?:weight|bias)\w*\s*(?:#.*)?$", re.M)
_INITIALISES = re.compile(
    r"(?:^|\.)(?:uniform|normal|constant|ones|zeros|xavier|kaiming|orthogonal|trunc)\w*_$"
)
_ASKED = frozenset("size shape dim ndim numel dtype device".split())


def by_parameter(tree: cst.Module, text: str) -> cst.Module:
    """A file that writes to ``up.weight.data`` by that name."""
    names = set()
    if ".data" in text:
        names |= {n for n in _NAMED.findall(text) if re.search(rf"\b{n}\s*[\[.]", text)}
    if "init" in text:
        names |= {n for n in _PARAMETER.findall(text) if re.search(rf"_\(\s*{n}\b", text)}
    if not names:
        return tree
    return with_functions(tree, lambda one: _function(one, names))


def _function(function: cst.FunctionDef, names: set[str]) -> cst.FunctionDef:
    for name in sorted(names):
        data = _data(function, name)
        if data is not None:
            function = syntax.changed(function, body=_written_out(function.body, name, data))
    return function


def _data(function: cst.FunctionDef, name: str) -> cst.Attribute | None:
    """The data that a name stands for in all of a function, which writes to it by that name."""
    bindings = list(_bindings(function))
    values = [value for one, value in bindings if one == name]
    if len(values) != 1 or not isinstance(values[0], cst.Attribute):
        return None
    data = values[0]
    root, parameter = _root(data.value), data
    if data.attr.value == "data" and isinstance(data.value, cst.Attribute):
        parameter = data.value
    if not root or not parameter.attr.value.startswith(("weight", "bias")):
        return None
    written = is_written(function.body, name) if parameter is not data else False
    if not written and not (parameter is data and _is_initialised(function.body, name)):
        return None
    if sum(one == root for one, _ in bindings) > 1:
        return None
    if not all(_comes_first(loop, name, data) for loop in _loops(function, root)):
        return None
    path = syntax.code(parameter)
    named = False
    for node in syntax.walk(function.body):
        named = named or node is data
        if named and isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.Del)):
            code = syntax.code(node.target) if isinstance(node.target, cst.Attribute) else ""
            if code and f"{path}.data.".startswith((f"{code}.", f"{code}[")):
                return None
        if isinstance(node, (cst.FunctionDef, cst.Lambda, cst.Global, cst.Nonlocal)):
            return None
    return data


def _is_initialised(body: cst.BaseSuite, name: str) -> bool:
    """Whether ``init.normal_(w)`` stands there by itself."""
    for node in syntax.walk(body):
        match node:
            case cst.Expr(cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=said)), *_])):
                if said == name and _INITIALISES.search(syntax.code(func)):
                    return True
    return False


def _loops(function: cst.FunctionDef, root: str) -> Iterator[cst.For | cst.CompFor]:
    """The loops that bind a name."""
    for node in syntax.walk(function.body):
        if isinstance(node, (cst.For, cst.CompFor)) and root in bound(node.target):
            yield node


def _comes_first(loop: cst.For | cst.CompFor, name: str, data: cst.Attribute) -> bool:
    """Whether each round of a loop names the data before it does anything with it."""
    for line in loop.body.body if isinstance(loop, cst.For) else ():
        for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.Assign) and small.value is data:
                return True
        if name in syntax.names(line):
            return False
    return False


def _bindings(function: cst.FunctionDef) -> Iterator[tuple[str, cst.BaseExpression | None]]:
    """The names that a function binds, with what a plain assignment gives them."""
    for node in syntax.walk(function):
        if isinstance(node, cst.Assign):
            for one in node.targets:
                plain = isinstance(one.target, cst.Name) and len(node.targets) == 1
                for name in bound(one.target):
                    yield name, node.value if plain else None
        elif isinstance(node, (cst.AnnAssign, cst.NamedExpr, cst.For, cst.CompFor, cst.AugAssign)):
            for name in bound(node.target):
                yield name, None
        elif isinstance(node, cst.Param):
            yield node.name.value, None
        elif isinstance(node, cst.AsName):
            for name in bound(node.name):
                yield name, None


def _root(node: cst.BaseExpression) -> str:
    """``up`` of ``up.layers[0].weight``; empty for what calls something on its way."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice if len(node.slice) == 1 else None
            if not isinstance(index, cst.Index) or not isinstance(index.value, cst.Integer):
                return ""
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _written_out(body: cst.BaseSuite, name: str, data: cst.Attribute) -> Any:
    """The statements with the data itself for the name; the line that names it stays, which nothing reads any more."""

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, cst.Assign) and node.value is data:
            return node
        if isinstance(node, cst.Attribute):
            if isinstance(node.value, cst.Name) and node.attr.value in _ASKED:
                asked = data.value if data.attr.value == "data" else data
                return syntax.changed(node, value=asked) if node.value.value == name else node
            return syntax.rebuild(node, lambda one: one if one is node.attr else visit(one))
        if isinstance(node, cst.Arg) and node.keyword is not None:
            return syntax.rebuild(node, lambda one: one if one is node.keyword else visit(one))
        if isinstance(node, cst.Name) and node.value == name:
            return syntax.changed(data, lpar=node.lpar, rpar=node.rpar)
        return syntax.rebuild(node, visit)

    return visit(body)
