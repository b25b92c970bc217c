"""What stands below a node of libcst's tree, whitespace and punctuation left out: asked more often than anything else.

``CSTNode.children`` copies the node with a visitor to find out, which takes twenty times as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, get_origin

import libcst as cst

_SKIP = re.compile(
    r"lpar|rpar|whitespace\w*|leading_lines|header|footer|comma|semicolon|equal|dot|colon|lbracket|"
    r"rbracket|lbrace|rbrace|operator|asynchronous|lines_after_decorators|trailing_whitespace|"
    r"first_colon|second_colon|star|encoding|default_\w+|has_trailing_newline|indent|lines_\w+|"
    r"raw_value|quote|type_parameters"
)


@cache
def child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    """The fields of a node type that may hold expressions or statements."""
    return tuple(
        f.name
        for f in fields(kind)
        if not _SKIP.fullmatch(f.name) and f.type is not str and f.type is not bool
    )


@cache
def is_node(kind: type) -> bool:
    """Whether a type is a node type. libcst's classes are abstract ones, whose isinstance is slow."""
    return issubclass(kind, cst.CSTNode)


@cache
def lister(kind: type[cst.CSTNode]) -> Callable[[Any], list[Any]] | None:
    """A function from a node of this type to its children, None when it never has any.

    It is made from the declared types of the fields, as dataclasses make ``__init__``: children are asked for
    more often than anything else.
    """
    types = {f.name: f.type for f in fields(kind)}
    lines = ["def listed(node):", "    found = []"]
    for name in child_fields(kind):
        declared = types[name]
        if isinstance(declared, type) and is_node(declared):
            lines.append(f"    found.append(node.{name})")
        elif get_origin(declared) is Sequence:
            lines.append(f"    found += node.{name}")
        else:
            lines.append(f"    value = node.{name}")
            lines.append("    if is_node(type(value)): found.append(value)")
            lines.append("    elif type(value) in (list, tuple): found += value")
    if len(lines) == 2:
        return None
    namespace: dict[str, Any] = {"is_node": is_node}
    exec("\n".join([*lines, "    return found"]), namespace)
    made: Callable[[Any], list[Any]] = namespace["listed"]
    return made


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The child nodes of a node in source order, whitespace and punctuation left out."""
    listed = lister(type(node))
    return listed(node) if listed is not None else []


def walk(node: cst.CSTNode) -> list[cst.CSTNode]:
    """A node and all below it, whitespace and punctuation left out."""
    found = [node]
    for item in found:
        found.extend(children(item))
    return found
