"""What a model takes: arrays with named dimensions, constants and nested groups, as plain data."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Size = int | str
Bound = int | float | str | None

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "uint8", "int16", "int32", "int64")
DTYPES = (*FLOATS, *INTS, "bool")
DISTRIBUTIONS = ("uniform", "normal", "lognormal", "probabilities", "unit")

_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class SpecError(ValueError):
    """An input description that cannot be drawn from; the message says which part and why."""


@dataclass(frozen=True)
class Array:
    """One tensor argument.

    Args:
      shape: sizes; a string is a dimension's name or arithmetic on names (``"2*T"``, ``"T+1"``).
      dtype: torch's name of the element type.
      low, high: bounds; numbers or dimension names. ``high`` is exclusive for integers.
      distribution: of floats, one of ``DISTRIBUTIONS``; ``""`` is uniform between two bounds, else normal. Probabilities
        sum to one along the last axis, a unit vector's length along it is one.
      name: keyword the array is passed by; positional when None.
      sorted: values ascend along the last axis (a batch vector of a graph).
      density: for booleans, the share of True.
      empty: rows of booleans may be False throughout; else one value in each is True.
      ragged: ones, then zeros along the last axis, as a mask of sequences has them; one row is all ones.
      optional: passed in some examples and left out in others; so it is for every kind of item.
    """

    shape: tuple[Size, ...]
    dtype: str = "float32"
    low: Bound = None
    high: Bound = None
    name: str | None = None
    sorted: bool = False
    density: float = 0.5
    empty: bool = False
    ragged: bool = False
    optional: bool = False
    distribution: str = ""


@dataclass(frozen=True)
class Constant:
    """An argument passed as it stands: a Python number, a string, None, or a given array."""

    value: Any
    name: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Choice:
    """A plain value, another one from example to example; each is a compilation."""

    values: tuple[Any, ...]
    name: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class Group:
    """A nested argument; ``kind`` is ``"tuple"``, ``"list"`` or ``"dict"`` (items then carry names)."""

    kind: str
    items: tuple[Item, ...]
    name: str | None = None
    optional: bool = False


Item = Array | Constant | Choice | Group


@dataclass(frozen=True)
class InputSpec:
    """All arguments of one call and the choices for every named dimension.

    ``where`` holds what sizes must fulfil together (``"T <= L"``, ``"H % 4 == 0"``).
    ``hook`` replaces ``items`` for what a table cannot say: ``hook(rng, sizes, profile)`` returns the
    positional arguments (a tuple or list), those by name (a dict), or ``(args, kwargs)``, as numpy arrays.
    """

    items: tuple[Item, ...] = ()
    dims: Mapping[str, Sequence[int]] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    hook: Callable[..., Any] | None = None
    where: tuple[str, ...] = ()

    def arrays(self) -> list[Array]:
        """Every array, depth first."""
        return [leaf for item in self.items for leaf in _arrays(item)]

    def allows(self, sizes: Mapping[str, int]) -> bool:
        """Whether every dimension has one of its choices, and the conditions on them hold."""
        if set(sizes) != set(self.dims):
            return False
        chosen = all(size in self.dims[name] for name, size in sizes.items())
        return chosen and all(evaluate(condition, sizes) for condition in self.where)


def _arrays(item: Item) -> list[Array]:
    if isinstance(item, Array):
        return [item]
    if isinstance(item, Group):
        return [leaf for part in item.items for leaf in _arrays(part)]
    return []


def evaluate(size: Bound, sizes: Mapping[str, int]) -> Any:
    """The number meant by ``5``, ``"T"`` or ``"2*T+1"``.

    Raises:
      SpecError: a name that is no dimension, or something else than + - * // % on names and integers.
    """
    if not isinstance(size, str):
        return size
    try:
        return _evaluate(ast.parse(size, mode="eval").body, sizes)
    except (SyntaxError, KeyError, TypeError) as error:
        known = ", ".join(sizes) or "none"
        why: object = error
        if isinstance(error, SyntaxError):
            why = "sizes stand between commas: B,3" if ";" in size else "it is no expression"
        raise SpecError(
            f"cannot read the size {size!r} ({why}); dimensions declared: {known}"
        ) from error


def _evaluate(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left, sizes), _evaluate(node.right, sizes))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, sizes)
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARISONS for op in node.ops):
        values = [_evaluate(part, sizes) for part in (node.left, *node.comparators)]
        pairs = zip(node.ops, values[:-1], values[1:], strict=True)
        return all(_COMPARISONS[type(op)](a, b) for op, a, b in pairs)
    raise TypeError("only + - * // % and comparisons on names and integers")


def size_choices(spec: InputSpec, count: int = 3) -> list[dict[str, int]]:
    """At most ``count`` assignments of the named dimensions, smallest first.

    A shape costs a compilation, so few are used: the smallest sizes, the largest, and sizes in between. In
    all but the smallest, dimensions differ from each other where their choices allow it, for a swapped axis
    does not show in a square array.
    """
    if not spec.dims:
        return [{}]
    fixed = {size for array in spec.arrays() for size in array.shape if isinstance(size, int)}
    smallest = {name: min(choices) for name, choices in spec.dims.items()}
    found = [_admissible(spec, smallest)]
    for part in range(count - 1):
        fraction = 1.0 - part / max(count - 1, 1)
        for taken in (fixed, set()):
            assignment = _admissible(spec, _distinct(spec.dims, fraction, taken))
            if assignment not in found:
                found.append(assignment)
                break
    return sorted(found, key=lambda sizes: tuple(sizes.values()))


_TRIED = 20_000


def _admissible(spec: InputSpec, aim: dict[str, int]) -> dict[str, int]:
    """The assignment nearest to ``aim`` that fulfils the spec's conditions.

    Raises:
      SpecError: none does, among all or many.
    """

    def fits(sizes: Mapping[str, int]) -> bool:
        return all(evaluate(condition, sizes) for condition in spec.where)

    def distance(sizes: Mapping[str, int]) -> tuple[float, bool]:
        far = sum(abs(sizes[name] - aim[name]) / (1 + aim[name]) for name in aim)
        return far, len(set(sizes.values())) < len(sizes)

    if fits(aim):
        return aim
    names = list(spec.dims)
    if math.prod(len(choices) for choices in spec.dims.values()) <= _TRIED:
        drawn: Iterable[tuple[int, ...]] = itertools.product(*spec.dims.values())
    else:
        rng = random.Random(0)
        drawn = (tuple(map(rng.choice, spec.dims.values())) for _ in range(_TRIED))
    fitting = (sizes for sizes in (dict(zip(names, d, strict=True)) for d in drawn) if fits(sizes))
    best = min(fitting, key=distance, default=None)
    if best is None:
        raise SpecError(f"no sizes fulfil {' and '.join(spec.where)}")
    return best


def _distinct(
    dims: Mapping[str, Sequence[int]], fraction: float, fixed: set[int]
) -> dict[str, int]:
    assignment: dict[str, int] = {}
    for name, choices in dims.items():
        ordered = sorted(choices)
        aim = ordered[round(fraction * (len(ordered) - 1))]
        taken = fixed | set(assignment.values())
        free = [size for size in ordered if size not in taken] or ordered
        assignment[name] = min(free, key=lambda size: abs(size - aim))
    return assignment
