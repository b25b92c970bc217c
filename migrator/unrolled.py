"""What is computed by each of a few layers in one line: ``q, k = [f(x) for f in (self.q, self.k)]``.

It is read as ``q, k = self.q(x), self.k(x)`` where what it gives is written in place later, so that it is known that one
of them is not the other.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_SEVERAL = re.compile(r"^[ \t]*\w+(?:, *\w+)+ *= *[\[(].* for \w+ in [\[(]", re.MULTILINE)


def one_by_one(tree: cst.Module, text: str) -> cst.Module:
    """A file that calls a few layers one after the other."""
    if not _SEVERAL.search(text):
        return tree

    def change(function: cst.FunctionDef) -> cst.FunctionDef:
        written = _written(function)
        if not written:
            return function

        def visit(node: cst.CSTNode) -> Any:
            if isinstance(node, cst.Assign):
                return _unrolled(node, written)
            if isinstance(node, cst.BaseExpression):
                return node
            return syntax.rebuild(node, visit)

        made: cst.FunctionDef = syntax.rebuild(function, visit)
        return made

    return with_functions(tree, change)


def _written(function: cst.FunctionDef) -> set[str]:
    """The variables that a function writes to in place."""
    found: set[str] = set()
    for node in syntax.walk(function.body):
        target: Any = None
        if isinstance(node, cst.AugAssign):
            target = node.target
        elif isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript):
            target = node.target
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value.endswith("_") and not node.func.attr.value.endswith("__"):
                target = node.func.value
        while isinstance(target, (cst.Subscript, cst.Attribute)):
            target = target.value
        if isinstance(target, cst.Name):
            found.add(target.value)
    return found


def _unrolled(node: cst.Assign, written: set[str]) -> cst.Assign:
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Tuple(elements=names))],
            value=cst.ListComp(elt=result, for_in=clause)
            | cst.GeneratorExp(elt=result, for_in=clause),
        ) if not clause.ifs and clause.inner_for_in is None and clause.asynchronous is None:
            pass
        case _:
            return node
    bound = {one.value.value for one in names if isinstance(one.value, cst.Name)}
    over = clause.iter
    if len(bound) < len(names) or not bound & written or not isinstance(clause.target, cst.Name):
        return node
    if not isinstance(over, (cst.Tuple, cst.List)) or len(over.elements) != len(names):
        return node
    if not all(syntax.is_cheap(one.value) for one in over.elements):
        return node
    if any(isinstance(one, (cst.Lambda, cst.BaseComp)) for one in syntax.walk(result)):
        return node
    item = clause.target.value
    every = [
        syntax.substitute(result, {item: syntax.unparenthesized(one.value)})
        for one in over.elements
    ]
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    parts = [
        cst.Element(one, comma if place < len(every) - 1 else cst.MaybeSentinel.DEFAULT)
        for place, one in enumerate(every)
    ]
    return syntax.changed(node, value=cst.Tuple(parts, lpar=[], rpar=[]))
