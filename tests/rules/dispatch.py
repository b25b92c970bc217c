"""Chooses the definition of a torch name that a call means, at run time, by binding and by annotations."""

from __future__ import annotations

import ast
import functools
import inspect
import numbers
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from flax import nnx

from rules.registry import Definition, Unsupported

NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


@functools.cache
def signature(function: Any) -> inspect.Signature:
    """The definition's signature (annotations stay text)."""
    return inspect.signature(function)


def is_random(definition: Definition) -> bool:
    """Whether the definition draws random numbers."""
    return "rngs" in signature(definition.function).parameters


def is_int(value: Any) -> bool:
    """Whether a value is a Python integer (bool is not)."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def fits(annotation: str, value: Any) -> bool:
    """Whether a run-time value does not contradict a parameter annotation."""
    return _fits(ast.parse(annotation, mode="eval").body, value)


def _fits(node: ast.expr, value: Any) -> bool:
    if isinstance(node, ast.BinOp):
        return _fits(node.left, value) or _fits(node.right, value)
    if isinstance(node, ast.Constant):
        return value is None if node.value is None else True
    if isinstance(node, ast.Subscript):
        return _fits_subscript(node, value)
    name = node.id if isinstance(node, ast.Name) else ""
    match name:
        case "Tensor":
            return isinstance(value, (jax.Array, np.ndarray))
        case "int" | "Int":
            return is_int(value)
        case "float" | "Float" | "Number":
            return isinstance(value, numbers.Number) and not isinstance(value, jax.Array)
        case "bool" | "Bool":
            return isinstance(value, bool)
        case "str" | "Str":
            return isinstance(value, str)
        case "Ints" | "Shape":
            return is_int(value) or (
                isinstance(value, (tuple, list)) and all(is_int(v) or _scalar(v) for v in value)
            )
        case "DType":
            return isinstance(value, (np.dtype, type)) or (
                hasattr(value, "dtype") and not hasattr(value, "shape")
            )
        case "tuple" | "list" | "Tuple" | "List" | "Sequence":
            return isinstance(value, (tuple, list))
        case "Device":
            return value is None or isinstance(value, str)
    return True


def _scalar(value: Any) -> bool:
    return isinstance(value, jax.Array) and value.ndim == 0


def _fits_subscript(node: ast.Subscript, value: Any) -> bool:
    if isinstance(node.value, ast.Name) and node.value.id == "DType":
        category = {"complex": "c", "float": "f", "int": "i"}[ast.literal_eval(node.slice)]
        return _fits(node.value, value) and np.dtype(value).kind == category
    head = node.value.id if isinstance(node.value, ast.Name) else ""
    if head == "Tensor":
        return isinstance(value, (jax.Array, np.ndarray))
    if head == "Literal":
        return value == ast.literal_eval(node.slice)
    if head in ("tuple", "list", "Sequence"):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        kind = items[0]
        return isinstance(value, (tuple, list)) and all(_fits(kind, v) for v in value)
    return True


def _bind(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Bound arguments, or None where signature or annotations do not allow the call."""
    sig = signature(definition.function)
    renamed = {
        NUMPY_NAMES[k] if k not in sig.parameters and NUMPY_NAMES.get(k) in sig.parameters else k: v
        for k, v in kwargs.items()
    }
    for parameter in sig.parameters.values():
        # torch lets f(2, 3) be written f(size=(2, 3))
        if parameter.kind is parameter.VAR_POSITIONAL and parameter.name in renamed:
            args = (*args, renamed.pop(parameter.name))
    if "rngs" in sig.parameters:
        renamed["rngs"] = nnx.Rngs(next(_seeds))
    try:
        bound = sig.bind(*args, **renamed)
    except TypeError:
        return None
    for name, value in bound.arguments.items():
        parameter = sig.parameters[name]
        if parameter.annotation is parameter.empty or name == "rngs":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            values = value
        elif value is parameter.default or (value is None and parameter.default is None):
            continue
        else:
            values = (value,)
        if not all(fits(parameter.annotation, v) for v in values):
            return None
    return bound


_seeds = iter(range(10**9))


def choose(definitions: Sequence[Definition], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The first definition that takes the call, with the bound arguments."""
    for definition in definitions:
        if (bound := _bind(definition, args, kwargs)) is not None:
            return definition, bound
    return None


def call(definitions: Sequence[Definition], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run the definition the call means.

    Raises Unsupported where the definition says so, TypeError where no definition takes the call.
    """
    found = choose(definitions, args, kwargs)
    if found is None:
        shown = [type(a).__name__ for a in args], {k: type(v).__name__ for k, v in kwargs.items()}
        raise TypeError(f"no definition of {definitions[0].names[0]} takes {shown}")
    definition, bound = found
    return definition.function(*bound.args, **bound.kwargs)


__all__ = ["Unsupported", "call", "choose", "fits", "is_random", "signature"]
