"""What is known where a piece of a helper runs, and what it says about expressions."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from migrator.convert.trim.walking import asked, kept, names, parts


@dataclass
class Known:
    """What is known where a piece of code runs.

    Attributes:
      constants: name → the one value it has; it is put in the name's place.
      values: name → the values it may have, which decide a test when they agree.
      attributes: attribute of ``self`` → the one value it has.
      attribute_values: attribute of ``self`` → the values it may have.
      functions: functions of one line defined here, by name.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    values: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    attributes: dict[str, ast.expr] = field(default_factory=dict)
    attribute_values: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def without(self, names: Iterable[str]) -> Known:
        """What is still known where these names are bound anew."""
        gone = set(names)
        own = "self" not in gone
        return Known(
            {n: v for n, v in self.constants.items() if n not in gone},
            {n: v for n, v in self.values.items() if n not in gone},
            self.attributes if own else {},
            self.attribute_values if own else {},
            {n: v for n, v in self.functions.items() if n not in gone},
        )


PRESENT = object()
"""The value of what is known only not to be None."""
SEQUENCE = object()
"""The value of what is known only to be a tuple."""
INTEGER = object()
"""The value of what is known only to be an integer."""
MARKS = (PRESENT, SEQUENCE, INTEGER)
"""What stands for values of which not all is known."""


def examples(values: Iterable[Any]) -> list[Any]:
    """A value of the type of each, where at least the type is known."""
    return [() if v is SEQUENCE else 1 if v is INTEGER else v for v in values]


def constant(value: Any, origin: str = "") -> ast.Constant:
    """A constant that remembers the name it stands for."""
    made = ast.Constant(value)
    made.origin = origin  # type: ignore[attr-defined]
    return made


def renamed(node: ast.expr, origin: str) -> ast.expr:
    """A constant, or a tuple of constants, that stands for another name."""
    if isinstance(node, ast.Tuple):
        return ast.Tuple([renamed(e, origin) for e in node.elts], ast.Load())
    assert isinstance(node, ast.Constant)
    return constant(node.value, origin)


def is_constant(node: ast.expr) -> bool:
    """A constant or a tuple of constants, put in for a name."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(is_constant, node.elts))
    return isinstance(node, ast.Constant) and bool(getattr(node, "origin", ""))


def origins(nodes: Iterable[ast.AST], handed: Collection[int] = ()) -> set[str]:
    """The names whose numbers stand as plain numbers in code: a reader could not tell what they are.

    Args:
      handed: ids of nodes that do not count.
    """
    return {origin for top in nodes for node, origin in _numbers(top) if id(node) not in handed}


@kept
def _numbers(node: ast.AST) -> list[tuple[ast.Constant, str]]:
    """The numbers in code that stand for a name, with that name."""
    own, inner = parts(node)
    found = [
        (one, str(vars(one)["origin"]))
        for one in own
        if isinstance(one, ast.Constant) and vars(one).get("origin") and _is_number(one.value)
    ]
    for statement in inner:
        found += _numbers(statement)
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def truth(node: ast.expr, known: Known) -> bool | None:
    """Whether a test holds; None when only a run tells."""
    values = possible(node, known)
    if values is None or any(mark in values for mark in MARKS):
        return None
    found = {bool(value) for value in values}
    return found.pop() if len(found) == 1 else None


def possible(node: ast.expr, known: Known) -> tuple[Any, ...] | None:
    """The values that an expression may have."""
    if isinstance(node, ast.Constant):
        return (node.value,)
    if isinstance(node, ast.Name):
        return known.values.get(node.id)
    if isinstance(node, ast.Attribute) and is_own(node):
        return known.attribute_values.get(node.attr)
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2:
        first, second = (possible(value, known) for value in node.values)
        if first is None or second is None:
            return None
        return *(v for v in first if v in MARKS or v), *second
    if _is_whole(node) and possible(node.value, known) == (PRESENT,):  # type: ignore[attr-defined]
        return (PRESENT,)
    return (SEQUENCE,) if is_repeated(node) else None


def _is_whole(node: ast.expr) -> bool:
    """``self.weight[...]``"""
    at = node.slice if isinstance(node, ast.Subscript) else None
    return isinstance(at, ast.Constant) and at.value is ...


def is_repeated(node: ast.expr) -> bool:
    """``(value,) * 2``"""
    plain = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return plain and isinstance(node.left, ast.Tuple)  # type: ignore[attr-defined]


def is_own(node: ast.Attribute) -> bool:
    """``self.name``"""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def is_plain(node: ast.expr) -> bool:
    """A constant, or a tuple of them."""
    if isinstance(node, ast.Tuple):
        return all(map(is_plain, node.elts))
    return isinstance(node, ast.Constant)


def concerns(known: Known, node: ast.stmt) -> bool:
    """Whether what is known may change a statement."""
    here = names(node)
    if not (here.isdisjoint(known.constants) and here.isdisjoint(known.functions)):
        return True
    if known.attributes and not asked(node).isdisjoint(known.attributes):
        return True
    if not known.values and not known.attribute_values:
        return False
    tested = _tested(node)
    return not (tested.isdisjoint(known.values) and tested.isdisjoint(known.attribute_values))


@kept
def _tested(node: ast.stmt) -> frozenset[str]:
    """The names and attributes whose possible values may decide something in a statement."""
    own, inner = parts(node)
    found = set[str]()
    for one in own:
        if isinstance(one, ast.If | ast.IfExp):
            found |= names(one.test) | asked(one.test)
        elif (
            isinstance(one, ast.Compare | ast.BoolOp)
            or (isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.Not))
            or (isinstance(one, ast.Call) and _is_call_of(one, "isinstance"))
            or (isinstance(one, ast.Call) and _is_call_of(one, "hasattr"))
        ):
            found |= names(one) | asked(one)
    return frozenset(found).union(*map(_tested, inner))


def _is_call_of(node: ast.Call, name: str) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == name
