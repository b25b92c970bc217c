"""``table.cuda(x.get_device())``: the number of a device, where torch takes the device itself as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax

_MOVING = frozenset({"cuda", "to"})


def as_devices(tree: cst.Module, text: str) -> cst.Module:
    """A file that says ``x.device`` where it hands ``x.get_device()`` on as a device, also by a name for nothing else."""
    if ".get_device()" not in text:
        return tree
    handed = list(_handed(tree))
    numbers: list[cst.CSTNode] = [one for one in handed if _is_number(one)]
    for function in syntax.walk(tree):
        if isinstance(function, cst.FunctionDef):
            numbers += _by_name(function, handed)

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, cst.Call) and any(node is one for one in numbers):
            assert isinstance(node.func, cst.Attribute)
            owner = visit(node.func.value)
            return cst.Attribute(owner, cst.Name("device"))  # type: ignore[arg-type]
        return syntax.rebuild(node, visit)

    made = visit(tree) if numbers else tree
    assert isinstance(made, cst.Module)
    return made


def _by_name(function: cst.FunctionDef, handed: list[cst.BaseExpression]) -> list[cst.CSTNode]:
    """``x.get_device()`` of ``device = x.get_device()`` in a function that hands the name on as a device alone."""
    below: list[Any] = list(syntax.walk(function))
    found: list[cst.CSTNode] = []
    if any(isinstance(one, cst.Global | cst.Nonlocal) for one in below):
        return found
    words = [one.attr for one in below if isinstance(one, cst.Attribute)]
    words += [one.keyword for one in below if isinstance(one, cst.Arg) and one.keyword is not None]
    for name in {_bound(one) for one in below} - {""}:
        bound = [one for one in below if _bound(one) == name]
        known = [*handed, *words, *(one.targets[0].target for one in bound)]
        named = [one for one in below if isinstance(one, cst.Name) and one.value == name]
        if all(any(one is each for each in known) for one in named):
            found += [one.value for one in bound]
    return found


def _is_number(node: cst.CSTNode) -> bool:
    """``x.get_device()``."""
    return (
        isinstance(node, cst.Call)
        and not node.args
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "get_device"
    )


def _bound(node: cst.CSTNode) -> str:
    """``device`` of ``device = x.get_device()``."""
    match node:
        case cst.Assign([cst.AssignTarget(cst.Name(name))], value) if _is_number(value):
            return name
    return ""


def _handed(tree: cst.Module) -> Iterator[cst.BaseExpression]:
    """What the file hands to torch as a device: ``.cuda(d)``, ``.to(d)``, ``torch.zeros(n, device=d)``."""
    for node in syntax.walk(tree):
        if not isinstance(node, cst.Call):
            continue
        moving = isinstance(node.func, cst.Attribute) and node.func.attr.value in _MOVING
        for i, item in enumerate(node.args):
            keyword = item.keyword.value if item.keyword is not None else None
            if not item.star and (keyword == "device" or (moving and keyword is None and i == 0)):
                yield item.value
