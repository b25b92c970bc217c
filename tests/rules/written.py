"""Writes the source a user would write for a call of torch: functions, methods, operators, subscripts, modules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tests.rules.database import Call
from tests.rules.values import leaves

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
PREFIX = {"neg": "-", "pos": "+", "invert": "~"}
HINTS = {"f": "torch.FloatTensor", "i": "torch.LongTensor", "b": "torch.BoolTensor"}


class Unwritable(Exception):
    """A value that has no source text."""


class Writer:
    """Source text of values and calls, tensors by their names."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.names = dict(names)

    def value(self, value: Any) -> str:
        """The source of an argument."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self.names:
                raise Unwritable("a tensor made on the way")
            return self.names[id(value)]
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, torch.device):
            return repr(str(value))
        if isinstance(value, (list, tuple)):
            return self._sequence(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return f"slice({', '.join(map(self.value, parts))})"
        return self._constant(value)

    def _sequence(self, value: Sequence[Any]) -> str:
        items = [self.value(v) for v in value]
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        return f"({', '.join(items)}{',' * (len(items) == 1)})"

    def _constant(self, value: Any) -> str:
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return f"float('{value}')"
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return repr(value)
        if value is Ellipsis:
            return "..."
        name = getattr(value, "__name__", "")
        if callable(value) and getattr(torch.nn.functional, name, None) is value:
            return f"F.{name}"
        if callable(value) and getattr(torch, name, None) is value:
            return f"torch.{name}"
        raise Unwritable(f"an argument of type {type(value).__name__}")

    def arguments(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> str:
        """The text between the parentheses of a call."""
        parts = [self.value(a) for a in args]
        return ", ".join(parts + [f"{k}={self.value(v)}" for k, v in kwargs.items()])

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The expression of a call by its public name."""
        if not name.startswith("Tensor."):
            short = name.replace("torch.nn.functional.", "F.")
            return f"{short}({self.arguments(args, kwargs)})"
        method = name.removeprefix("Tensor.")
        receiver, rest = args[0], args[1:]
        if method.startswith("__") and method.endswith("__"):
            if (text := self._operator(method.strip("_"), receiver, rest)) is not None:
                return text
        owner = self.value(receiver)
        if not isinstance(receiver, torch.Tensor):
            raise Unwritable(f"a method of {type(receiver).__name__}")
        if not callable(getattr(torch.Tensor, method)):
            return f"{owner}.{method}"
        return f"{owner}.{method}({self.arguments(rest, kwargs)})"

    def _operator(self, method: str, receiver: Any, rest: Sequence[Any]) -> str | None:
        if method == "getitem":
            return f"{self.value(receiver)}[{self.subscript(rest[0])}]"
        if method == "abs":
            return f"abs({self.value(receiver)})"
        if method in PREFIX:
            return f"{PREFIX[method]}{self.value(receiver)}"
        if method in INFIX:
            return f"{self.value(receiver)} {INFIX[method]} {self.value(rest[0])}"
        if method.startswith("r") and method[1:] in INFIX:
            return f"{self.value(rest[0])} {INFIX[method[1:]]} {self.value(receiver)}"
        return None

    def subscript(self, index: Any) -> str:
        """The text between the brackets of ``x[…]``."""
        if isinstance(index, tuple) and index:
            return ", ".join(map(self._item, index)) + "," * (len(index) == 1)
        return self._item(index)

    def _item(self, item: Any) -> str:
        if not isinstance(item, slice):
            return self.value(item)
        start, stop, step = (
            "" if p is None else self.value(p) for p in (item.start, item.stop, item.step)
        )
        return f"{start}:{stop}" + (f":{step}" if step else "")


def in_place(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], writer: Writer) -> str:
    """The statement of an in-place method or augmented assignment."""
    method = name.removeprefix("Tensor.").strip("_")
    if name.startswith("Tensor.__i") and method[1:] in INFIX:
        return f"{writer.value(args[0])} {INFIX[method[1:]]}= {writer.value(args[1])}"
    return writer.call(name, args, kwargs)


def parameters(inputs: Sequence[torch.Tensor], precise: bool) -> str:
    """The parameter list ``a0: torch.Tensor, …``; ``precise`` hints name the class of the dtype."""
    return ", ".join(
        f"a{i}: {_hint(t) if precise else 'torch.Tensor'}" for i, t in enumerate(inputs)
    )


def _hint(tensor: torch.Tensor) -> str:
    if tensor.is_complex():
        return "torch.Tensor"
    kind = "b" if tensor.dtype == torch.bool else "f" if tensor.is_floating_point() else "i"
    return HINTS[kind]


def shapes_told(inputs: Sequence[torch.Tensor]) -> list[str]:
    """Statements that tell a reader the ranks: ``d0, d1 = a0.shape``."""
    return [
        f"{', '.join(f'd{k}' for k in range(t.ndim))}{',' * (t.ndim == 1)} = a{i}.shape"
        for i, t in enumerate(inputs)
        if t.ndim
    ]


def body(calls: Sequence[Call], inputs: Sequence[torch.Tensor], mutate: bool = False) -> list[str]:
    """The statements of a function of ``a0, a1, …`` that makes these calls and returns the last result.

    Args:
      mutate: the call works in place on a copy of its first argument, which is returned.
    """
    writer = Writer({id(t): f"a{i}" for i, t in enumerate(inputs)})
    if mutate:
        (call,) = calls
        if not isinstance(call.args[0], torch.Tensor):
            raise Unwritable("works in place on no tensor")
        name = writer.value(call.args[0])
        statement = in_place(call.names[0], call.args, call.kwargs, writer)
        return [f"{name} = {name}.clone()", statement, f"return {name}"]
    lines = []
    for number, call in enumerate(calls):
        if not call.names:
            raise Unwritable(f"{call.function} has no public name")
        text = writer.call(call.names[0], call.args, call.kwargs)
        if number == len(calls) - 1:
            lines.append(f"return {text}")
            break
        lines.append(f"v{number} = {text}")
        _name_results(writer, call.result, f"v{number}")
    return lines


def _name_results(writer: Writer, result: Any, name: str) -> None:
    if isinstance(result, torch.Tensor):
        writer.names[id(result)] = name
    elif isinstance(result, (tuple, list)) and list(leaves(result)):
        for i, item in enumerate(result):
            _name_results(writer, item, f"{name}[{i}]")
