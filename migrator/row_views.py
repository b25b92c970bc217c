"""Rows of a tensor that a loop writes to, by their place: ``padded[i, :n] = x`` for ``row[:n] = x``.

``for x, row in zip(every, padded): row[: len(x)] = x`` fills the tensor through views of it. The place says the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import bound, is_written, with_functions

_NEW = "zeros|ones|empty|full|zeros_like|ones_like|empty_like|full_like|new_zeros|new_ones|new_empty|new_full"
_MADE = re.compile(rf"^[ \t]*(\w+)\s*=[^\n=]*\b(?:{_NEW})\(", re.M)
_LOOP = re.compile(r"for(?<!\wfor)\b[^\n]*?\bin\b([^\n]*)")
"""A loop and what it goes over; the word comes first and what must not be before it then, which is found at once."""
_WORD = re.compile(r"\w+")
_MAKING = frozenset(_NEW.split("|"))


def by_place(tree: cst.Module, text: str) -> cst.Module:
    """A file whose loops name the place of a row that they write to."""
    over = {word for rest in _LOOP.findall(text) for word in _WORD.findall(rest)}
    if not over or over.isdisjoint(_MADE.findall(text)):
        return tree
    return with_functions(tree, _function)


@dataclass
class _Loop:
    """What a loop goes through side by side, and the name that counts."""

    number: str = ""
    pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = field(default_factory=list)
    zipped: bool = False


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    loops = [node for node in syntax.walk(function.body) if isinstance(node, cst.For)]
    made = {loop: new for loop in loops if (new := _by_place(loop, function)) is not None}
    if not made:
        return function

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        new = made.get(node)  # type: ignore[call-overload]
        return new if new is not None else syntax.rebuild(node, visit)

    return syntax.changed(function, body=visit(function.body))


def _by_place(loop: cst.For, function: cst.FunctionDef) -> cst.For | None:
    """The loop over the rest, which counts; None where it writes to no row."""
    header = _read(loop)
    if header is None or loop.orelse is not None:
        return None
    rows: dict[str, str] = {}
    rest: list[tuple[cst.BaseExpression, cst.BaseExpression]] = []
    for target, over in header.pairs:
        if isinstance(target, cst.Name) and isinstance(over, cst.Name):
            if is_written(loop.body, target.value) and _is_new(function, over.value, loop):
                if _stays(function, loop, target.value):
                    rows[target.value] = over.value
                    continue
        rest.append((target, over))
    if not rows or (header.zipped and not rest):
        return None
    used = set(syntax.names(function))
    number = header.number or next((n for n in ("i", "j", "row", "place") if n not in used), "")
    if not number or (header.number and number in _bound(loop.body)):
        return None
    body = _placed(loop.body, rows, number)
    places = cst.Call(cst.Name("range"), [cst.Arg(_shortest([*rows.values()]))])
    if not rest:
        return syntax.changed(loop, target=cst.Name(number), iter=places, body=body)
    parts: list[Any] = [target for target, _ in rest]
    if header.number and len(rest) > 1:  # ``i, (x, y)``
        inside: Any = syntax.parenthesized(cst.Tuple([cst.Element(one) for one in parts], [], []))
        zipped = syntax.with_args(cst.Call(cst.Name("zip")), [cst.Arg(one) for _, one in rest])
        parts, rest = [inside], [(inside, zipped)]
    target = cst.Tuple([cst.Element(one) for one in (cst.Name(number), *parts)], lpar=[], rpar=[])
    given = [places, *(one for _, one in rest)]
    over = syntax.with_args(cst.Call(cst.Name("zip")), [cst.Arg(one) for one in given])
    return syntax.changed(loop, target=target, iter=over, body=body)


def _shortest(names: Sequence[str]) -> cst.Call:
    """``len(a)``, and ``min(len(a), len(b))``: a loop ends with the first that does."""
    every = [cst.Call(cst.Name("len"), [cst.Arg(cst.Name(one))]) for one in dict.fromkeys(names)]
    if len(every) == 1:
        return every[0]
    return syntax.with_args(cst.Call(cst.Name("min")), [cst.Arg(one) for one in every])


def _read(loop: cst.For) -> _Loop | None:
    """``for x, row in zip(every, padded)``, ``for i, row in enumerate(padded)``, ``for row in padded``."""
    over: Any = loop.iter
    target: Any = loop.target
    found = _Loop()
    if loop.asynchronous is not None:
        return None
    given = _given(over, "enumerate")
    if given is not None:
        parts = _parts(target)
        if len(given) != 1 or len(parts) != 2 or not isinstance(parts[0], cst.Name):
            return None
        found.number, over, target = parts[0].value, given[0], parts[1]
    given = _given(over, "zip")
    if given is None:
        found.pairs = [(target, over)]
        return found
    parts = _parts(target)
    if len(parts) != len(given):
        return None
    found.pairs, found.zipped = list(zip(parts, given, strict=True)), True
    return found


def _given(node: cst.BaseExpression, name: str) -> list[cst.BaseExpression] | None:
    """What ``zip(…)`` is given, in order."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Name):
        return None
    if node.func.value != name or any(a.keyword is not None or a.star for a in node.args):
        return None
    return [a.value for a in node.args]


def _parts(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    every = node.elements if isinstance(node, cst.Tuple) else []
    return [one.value for one in every if isinstance(one, cst.Element)]


def _is_new(function: cst.FunctionDef, name: str, loop: cst.For) -> bool:
    """Whether a name is only ever the new tensor that the function makes before a loop."""
    if name in _bound(function.params) or name in _bound(loop):
        return False
    made = [
        node
        for node in syntax.walk(function.body)
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr))
        and name in _bound(node)
    ]
    lines = [
        node.value
        for node in syntax.walk(function.body)
        if isinstance(node, cst.Assign) and [t for t in node.targets if t in made]
    ]
    if len(made) != 1 or len(lines) != 1 or not isinstance(lines[0], cst.Call):
        return False
    func = lines[0].func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _MAKING:
        return False
    of_torch = isinstance(func.value, cst.Name) and func.value.value == "torch"
    return of_torch or func.attr.value.startswith("new_")


def _bound(node: cst.CSTNode, augmented: bool = True) -> set[str]:
    """The names that are bound in a node, by ``+=`` too."""
    found: set[str] = set()
    for one in syntax.walk(node):
        if isinstance(one, (cst.AssignTarget, cst.AnnAssign, cst.NamedExpr)):
            found.update(bound(one.target))
        elif isinstance(one, cst.AugAssign) and augmented:
            found.update(bound(one.target))
        elif isinstance(one, (cst.For, cst.CompFor)):
            found.update(bound(one.target))
        elif isinstance(one, cst.Param):
            found.add(one.name.value)
    return found


def _stays(function: cst.FunctionDef, loop: cst.For, name: str) -> bool:
    """Whether only the body of a loop knows a row, by no other name."""
    if name in _bound(loop.body, augmented=False):
        return False
    if any(isinstance(n, (cst.Lambda, cst.FunctionDef)) for n in syntax.walk(loop.body)):
        return False  # which may see another row later
    inside = syntax.names(loop.body).get(name, 0) + syntax.names(loop.target).get(name, 0)
    return syntax.names(function).get(name, 0) == inside


def _placed(body: cst.BaseSuite, rows: dict[str, str], number: str) -> cst.BaseSuite:
    place = cst.SubscriptElement(cst.Index(cst.Name(number)))

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, cst.Attribute):
            return syntax.rebuild(node, lambda one: one if one is node.attr else visit(one))
        if isinstance(node, cst.Arg) and node.keyword is not None:
            return syntax.rebuild(node, lambda one: one if one is node.keyword else visit(one))
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
            if node.value.value in rows and _is_by_axis(node.slice):
                inside = [syntax.rebuild(one, visit) for one in node.slice]
                of = cst.Name(rows[node.value.value])
                return syntax.changed(node, value=of, slice=_listed([place, *inside]))
        if isinstance(node, cst.Name) and node.value in rows:
            return cst.Subscript(
                cst.Name(rows[node.value]), [place], lpar=node.lpar, rpar=node.rpar
            )
        return syntax.rebuild(node, visit)

    made = visit(body)
    assert isinstance(made, cst.BaseSuite)
    return made


def _is_by_axis(slices: Sequence[cst.SubscriptElement]) -> bool:
    """Whether an index is one of several axes: a single name might be a tuple of such."""
    only = slices[0].slice if len(slices) == 1 else None
    if isinstance(only, cst.Index):
        return isinstance(only.value, (cst.Integer, cst.UnaryOperation))
    return True


def _listed(slices: Sequence[cst.SubscriptElement]) -> list[cst.SubscriptElement]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    before = [syntax.changed(one, comma=comma) for one in slices[:-1]]
    return [*before, syntax.changed(slices[-1], comma=cst.MaybeSentinel.DEFAULT)]
