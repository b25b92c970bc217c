"""Where runs of equal sizes end, counted in Python: sizes are known when a program is traced, tensors are not.

``torch.cumsum(torch.unique_consecutive(torch.tensor([x.shape[-1] for x in every]), return_counts=True)[1], 0)`` groups
pictures of one size, so that a network sees each size once.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_CALL = re.compile(r"\bunique_consecutive\(")
_ENDS = (
    "[end for sizes in [__sizes__] for end in range(1, len(sizes) + 1) "
    "if sizes[end - 1 : end] != sizes[end : end + 1]]"
)


def counted(tree: cst.Module, text: str) -> cst.Module:
    """A file that counts in Python where runs of sizes end, if nothing but a loop goes through these places."""
    if "cumsum" not in text or not _CALL.search(text):
        return tree
    return with_functions(tree, _function)


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    body: Any = function.body
    for line in syntax.walk(function.body):
        if not isinstance(line, cst.Assign) or len(line.targets) != 1:
            continue
        target, sizes = line.targets[0].target, _sizes(line.value)
        if not isinstance(target, cst.Name) or sizes is None:
            continue
        if _only_gone_through(body, target.value):
            ends = syntax.substitute(syntax.parse(_ENDS), {"__sizes__": sizes})
            body = _replaced(body, line.value, ends)
    return syntax.changed(function, body=body) if body is not function.body else function


def _replaced(node: Any, old: cst.CSTNode, new: cst.CSTNode) -> Any:
    def visit(one: cst.CSTNode) -> cst.CSTNode:
        return new if one is old else syntax.rebuild(one, visit)

    return visit(node)


def _sizes(node: cst.BaseExpression) -> cst.ListComp | None:
    """The sizes of which runs are counted."""
    match node:
        case cst.Call(
            cst.Attribute(cst.Name("torch"), cst.Name("cumsum")),
            [cst.Arg(cst.Subscript(cst.Call() as unique, [which])), axis],
        ):
            pass
        case _:
            return None
    if syntax.code(which.slice).strip() != "1" or syntax.code(axis.value).strip() != "0":
        return None
    match unique:
        case cst.Call(
            cst.Attribute(cst.Name("torch"), cst.Name("unique_consecutive")),
            [
                cst.Arg(
                    cst.Call(
                        cst.Attribute(cst.Name("torch"), cst.Name("tensor" | "as_tensor")),
                        [cst.Arg(cst.ListComp() as sizes)],
                    )
                ),
                cst.Arg(cst.Name("True"), cst.Name("return_counts")),
            ],
        ):
            return sizes if _is_size(sizes.elt) else None
    return None


def _is_size(node: cst.BaseExpression) -> bool:
    """``x.shape[-1]``, ``x.size(0)``, ``len(x)``."""
    match node:
        case cst.Subscript(
            cst.Attribute(_, cst.Name("shape")), [cst.SubscriptElement(cst.Index())]
        ):
            return True
        case cst.Call(cst.Attribute(_, cst.Name("size")), [_]) | cst.Call(cst.Name("len"), [_]):
            return True
    return False


def _only_gone_through(body: cst.CSTNode, name: str) -> bool:
    """Whether loops go through a name, and use what they find there to cut lists."""
    nodes = list(syntax.walk(body))
    loops = [n for n in nodes if isinstance(n, cst.For) and _is(n.iter, name)]
    if len(loops) != syntax.names(body).get(name, 0) - 1:
        return False
    found = {n.target.value for n in loops if isinstance(n.target, cst.Name)}
    known = -1
    while len(found) > known:  # ``start = end``
        known = len(found)
        for line in nodes:
            if isinstance(line, cst.Assign) and any(_is(line.value, one) for one in found):
                found |= {t.target.value for t in line.targets if isinstance(t.target, cst.Name)}
    bounds = sum(
        sum(_is(bound, one) for bound in (node.lower, node.upper) if bound is not None)
        for node in nodes
        if isinstance(node, cst.Slice)
        for one in found
    )
    bound = sum(
        _is(n.target, one) or (isinstance(n, cst.AssignTarget) and _among(n.target, one))
        for n in nodes
        if isinstance(n, (cst.AssignTarget, cst.For))
        for one in found
    )
    compared = sum(  # ``if start == 0:``
        _is(n.left, one) and all(isinstance(c.comparator, cst.Integer) for c in n.comparisons)
        for n in nodes
        if isinstance(n, cst.Comparison)
        for one in found
    )
    copied = sum(_is(n.value, one) for n in nodes if isinstance(n, cst.Assign) for one in found)
    used = sum(syntax.names(body).get(one, 0) for one in found)
    return bool(loops) and used == bounds + bound + copied + compared


def _is(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _among(node: cst.CSTNode, name: str) -> bool:
    every = node.elements if isinstance(node, cst.Tuple) else []
    return any(_is(one.value, name) for one in every)
