"""Masks that leave out places which Python knows: ``mask[list(self.pruned_heads)] = 0`` and then ``bias[:, mask.bool()]``.

As a list of truth values the mask is known while JAX traces, and how many places it takes; torch takes either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_FILLED = re.compile(r"^[ \t]*(\w+)\[list\(self\.\w+\)\] *= *0[ \t]*$", re.M)
_LIST = "[i not in {place % __n__ for place in __places__} for i in range(__n__)]"


def as_lists(tree: cst.Module, text: str) -> cst.Module:
    """A file whose masks of what Python knows are lists."""
    if "torch.ones(" not in text or not _FILLED.search(text):
        return tree
    return with_functions(tree, _function)


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    if not isinstance(function.body, cst.IndentedBlock):
        return function
    found: dict[cst.CSTNode, Any] = {}
    for block in _blocks(function.body):
        for place, (made, filled) in enumerate(zip(block.body, block.body[1:], strict=False)):
            found |= _mask(function, block, block.body[place + 2 :], made, filled)
    if not found:
        return function

    def visit(node: cst.CSTNode) -> Any:
        if isinstance(node, cst.IndentedBlock):
            lines = [visit(one) for one in node.body if found.get(one, one) is not None]
            return syntax.changed(node, body=lines)
        return found[node] if node in found else syntax.rebuild(node, visit)

    return syntax.changed(function, body=visit(function.body))


def _blocks(body: cst.IndentedBlock) -> Iterator[cst.IndentedBlock]:
    """The blocks of a function that run once."""
    yield body
    for line in body.body:
        while isinstance(line, (cst.If, cst.With)):
            if isinstance(line.body, cst.IndentedBlock):
                yield from _blocks(line.body)
            line = line.orelse if isinstance(line, cst.If) else None  # type: ignore[assignment]
        if isinstance(line, cst.Else) and isinstance(line.body, cst.IndentedBlock):
            yield from _blocks(line.body)


def _names(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names in a node, in the order of the source."""
    if isinstance(node, cst.Name):
        yield node
    for one in syntax.children(node):
        yield from _names(one)


def _mask(
    function: cst.FunctionDef, block: cst.IndentedBlock, rest: Sequence[Any], made: Any, filled: Any
) -> dict[cst.CSTNode, Any]:
    """What the nodes of a function become that make such a mask, fill it and index by it; None for what goes."""
    match made, filled:
        case (
            cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        [cst.AssignTarget(cst.Name(value=name))],
                        cst.Call(
                            func=cst.Attribute(cst.Name("torch"), cst.Name("ones")),
                            args=[cst.Arg(value=size, keyword=None, star="")],
                        ) as ones,
                    )
                ]
            ),
            cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        [
                            cst.AssignTarget(
                                cst.Subscript(
                                    cst.Name(value=other),
                                    [
                                        cst.SubscriptElement(
                                            cst.Index(
                                                cst.Call(cst.Name("list"), [cst.Arg(value=places)])
                                            )
                                        )
                                    ],
                                )
                            )
                        ],
                        cst.Integer(value="0"),
                    )
                ]
            ),
        ) if name == other and not any(isinstance(one, cst.Call) for one in syntax.walk(size)):
            pass
        case _:
            return {}
    asked = [one for line in rest for one in syntax.walk(line) if _is_asked(one, name)]
    every = [one for one in _names(function.body) if one.value == name]
    inside = {id(one) for line in block.body for one in _names(line)}
    last = max((i for i, one in enumerate(every) if id(one) in inside), default=0)
    read = sum(one.value == name for line in rest for one in _names(line))
    if not asked or read != len(asked) or last != len(every) - 1:
        return {}
    parts = {"__n__": size, "__places__": places}
    new: dict[cst.CSTNode, Any] = {ones: syntax.substitute(syntax.parse(_LIST), parts)}
    new[filled] = None
    for one in asked:
        new[one] = cst.Index(cst.Name(name))
    return new


def _is_asked(node: cst.CSTNode, name: str) -> bool:
    """``mask.bool()`` as an index."""
    match node:
        case cst.Index(
            cst.Call(func=cst.Attribute(cst.Name(value=asked), cst.Name("bool")), args=[])
        ):
            return asked == name
    return False
