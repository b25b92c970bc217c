"""What the partial evaluator computes with: literals, sequences and code that is only known at run time."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from migrator.infer import kinds as k


class Open(Exception):
    """A decision or a statement the evaluator cannot settle: the definition must be copied and called."""


class Refused(Exception):
    """The definition says that this use has no conversion."""


@dataclass(frozen=True)
class Value:
    """Base of abstract values."""


@dataclass(frozen=True)
class Lit(Value):
    """A known Python scalar or None. ``name`` is the placeholder of the user's spelling."""

    value: Any
    name: str | None = None


@dataclass(frozen=True)
class Seq(Value):
    """A tuple or list whose elements are written out; an item may be a ``Star``."""

    items: tuple[Value, ...]
    type: str = "tuple"
    name: str | None = None

    @property
    def fixed(self) -> bool:
        """Whether each item is one element: ``(*a, b)`` is a sequence whose length ``a`` decides."""
        return not any(isinstance(item, Star) for item in self.items)


@dataclass(frozen=True)
class Range(Value):
    """``range`` with known bounds."""

    values: range


@dataclass(frozen=True, eq=False)
class Code(Value):
    """An expression evaluated at run time, with what is known of its kind."""

    node: ast.expr
    kind: k.Kind = k.UNKNOWN


@dataclass(frozen=True)
class Star(Value):
    """``*value`` in an argument list."""

    value: Value


def code(value: Value) -> ast.expr:
    """The expression that computes a value."""
    if isinstance(value, Code):
        return value.node
    if isinstance(value, (Lit, Seq)) and value.name:
        return ast.Name(value.name)
    if isinstance(value, Lit):
        if isinstance(value.value, (int, float)) and not isinstance(value.value, bool):
            number = value.value
            if number != number or number in (float("inf"), float("-inf")):
                sign = ast.UnaryOp(ast.USub(), _inf()) if number < 0 else _inf()
                return ast.Attribute(ast.Name("jnp"), "nan") if number != number else sign
            if number < 0:
                return ast.UnaryOp(ast.USub(), ast.Constant(-number))
        return ast.Constant(value.value)
    if isinstance(value, Seq):
        items = [code(item) for item in value.items]
        return ast.List(items) if value.type == "list" else ast.Tuple(items)
    if isinstance(value, Range):
        r = value.values
        bounds = [r.stop] if r.start == 0 and r.step == 1 else [r.start, r.stop]
        if r.step != 1:
            bounds.append(r.step)
        return ast.Call(ast.Name("range"), [code(Lit(b)) for b in bounds], [])
    if isinstance(value, Star):
        return ast.Starred(code(value.value))
    raise Open


def _inf() -> ast.expr:
    return ast.Attribute(ast.Name("jnp"), "inf")


def static(value: Value) -> Any:
    """The Python object a fully known value stands for; Open otherwise."""
    if isinstance(value, Lit):
        return value.value
    if isinstance(value, Seq):
        made = [static(item) for item in value.items]
        return made if value.type == "list" else tuple(made)
    if isinstance(value, Range):
        return value.values
    raise Open


def lift(obj: Any) -> Value:
    """The value that stands for a Python object."""
    if isinstance(obj, (tuple, list)):
        return Seq(tuple(lift(item) for item in obj), "list" if isinstance(obj, list) else "tuple")
    if isinstance(obj, range):
        return Range(obj)
    if obj is None or isinstance(obj, (bool, int, float, str, complex)):
        return Lit(obj)
    raise Open


def kind_of(value: Value) -> k.Kind:
    """The kind of an abstract value."""
    if isinstance(value, Code):
        return value.kind
    if isinstance(value, Lit):
        return k.Const(value.value)
    if isinstance(value, Seq):
        if value.type == "list":
            return k.Sequence(k.UNKNOWN)
        return k.Tuple(tuple(kind_of(item) for item in value.items))
    return k.UNKNOWN
