"""The words that a definition's body may use: decided here, never written out."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from migrator.convert.values import (
    Code,
    Lit,
    Open,
    Range,
    Refused,
    Seq,
    Star,
    Value,
    code,
    kind_of,
    lift,
    static,
)
from migrator.infer import kinds as k
from rules.definitions import Rule

_PYTHON = {"int": int, "float": float, "bool": bool, "str": str, "tuple": tuple, "list": list}


def _dtype_class(name: str) -> str:
    """ "float", "int", "bool" or "complex" for the name of a torch dtype."""
    if name == "bool":
        return "bool"
    if name.startswith(("complex", "cfloat", "cdouble", "chalf")):
        return "complex"
    return "int" if name.startswith(("int", "uint", "long", "short")) else "float"


class Words:
    """``sizes``, ``is_tensor``, ``isinstance``, ``len``, ``range``… over abstract values."""

    rule: Rule
    in_steps: bool
    """Whether local values of the definition may be statements of their own."""

    def eval(self, node: ast.expr) -> Value:
        """The abstract value of an expression."""
        raise NotImplementedError

    def decide(self, test: ast.expr) -> bool:
        """The truth of a test; Open when it is not known."""
        raise NotImplementedError

    def _word_unsupported(self, args: list[ast.expr]) -> Value:
        reason = self.eval(args[0])
        raise Refused(str(reason.value) if isinstance(reason, Lit) else self.rule.name)

    def _word_sizes(self, args: list[ast.expr]) -> Value:
        value = self.eval(args[0])
        if not isinstance(value, Seq):
            return value
        if len(value.items) != 1:
            return Seq(value.items)
        only = value.items[0]
        if isinstance(only, Seq):
            return only
        if isinstance(only, Star):
            return only.value
        if k.scalar_type(kind_of(only)) == "int":
            return value
        if isinstance(kind_of(only), (k.Sequence, k.Tuple)):
            return only
        if len(args) > 1:  # where it is used, JAX takes an int as well as a tuple
            return only
        raise Open

    def _word_surely(self, args: list[ast.expr]) -> Value:
        try:
            return Lit(self.decide(args[0]))
        except Open:
            return Lit(False)

    def _word_in_steps(self, args: list[ast.expr]) -> Value:
        return Lit(self.in_steps)

    def _word_axes(self, args: list[ast.expr]) -> Value:
        value = self.eval(args[0])
        tensor = kind_of(self.eval(args[1]))
        if isinstance(tensor, k.Tensor) and tensor.rank == 0:
            return Lit(None)
        if isinstance(value, Seq):
            made = Seq(value.items)
            if value.items and all(isinstance(item, Star) for item in value.items):
                return Code(ast.BoolOp(ast.Or(), [code(made), ast.Constant(None)]), kind_of(value))
            return made if value.items else Lit(None)
        kind = kind_of(value)
        if isinstance(value, Lit) or k.scalar_type(kind) or isinstance(kind, k.Tuple):
            return Lit(None) if kind == k.Tuple(()) else value
        if isinstance(kind, k.Sequence):
            call = ast.Call(ast.Name("tuple"), [code(value)], [])
            # `()` means all axes in torch; see migrator.convert.axes for what is written
            return Code(ast.BoolOp(ast.Or(), [call, ast.Constant(None)]), kind)
        return value  # an int; should it be a list after all, JAX raises

    def _word_as_axes(self, args: list[ast.expr]) -> Value | None:
        """Axes of which a reduction takes several: a caller says which, where nothing or a default alone tells."""
        value = self.eval(args[0])
        kind = kind_of(value)
        if not isinstance(value, Code) or not isinstance(value.node, ast.Name):
            return value
        default = isinstance(kind, k.Tuple) and not all(isinstance(i, k.Const) for i in kind.items)
        return None if default or isinstance(kind, (k.Unknown, k.Optional)) else value

    def _word_is_tensor(self, args: list[ast.expr]) -> Value:
        kind = kind_of(self.eval(args[0]))
        if isinstance(kind, k.Tensor):
            return Lit(True)
        if isinstance(kind, (k.Unknown, k.Optional, k.Other)):
            raise Open
        return Lit(False)

    def _dtype_word(self, dtype: str, arg: ast.expr) -> Value:
        kind = kind_of(self.eval(arg))
        if isinstance(kind, k.Tensor) and kind.dtype:
            return Lit(kind.dtype == dtype)
        if isinstance(kind, k.DType) and kind.name:
            return Lit(_dtype_class(kind.name) == dtype)
        scalar = k.scalar_type(kind)
        if scalar and scalar != "number":
            return Lit(scalar == dtype)
        raise Open

    def _word_isinstance(self, args: list[ast.expr]) -> Value | None:
        value = self.eval(args[0])
        types = args[1].elts if isinstance(args[1], ast.Tuple) else [args[1]]
        names = [t.id for t in types if isinstance(t, ast.Name)]
        if len(names) != len(types) or not all(n in _PYTHON for n in names):
            return None
        kind = kind_of(value)
        actual: type | None = None
        if isinstance(kind, k.Const):
            actual = type(kind.value)
        elif isinstance(kind, k.Scalar):
            actual = _PYTHON.get(kind.type)
        elif isinstance(kind, k.Tuple):
            actual = tuple
        elif isinstance(kind, k.Sequence):
            actual = {"list": list, "tuple": tuple, "size": tuple}.get(kind.type)
        elif isinstance(kind, (k.Tensor, k.DType, k.Module, k.Device, k.Generator)):
            return Lit(False)
        if isinstance(value, Seq) and value.type == "list":
            actual = list
        if actual is None:
            raise Open
        return Lit(issubclass(actual, tuple(_PYTHON[n] for n in names)))

    def _word_len(self, args: list[ast.expr]) -> Value | None:
        value = self.eval(args[0])
        if isinstance(value, Seq) and value.fixed:
            return Lit(len(value.items))
        return None

    def _sequence(self, args: list[ast.expr], type_: str) -> Value | None:
        value = self.eval(args[0]) if args else Seq(())
        if isinstance(value, Range):
            return Seq(tuple(Lit(v) for v in value.values), type_)
        if isinstance(value, Seq):
            return Seq(value.items, type_)
        return None

    def _word_tuple(self, args: list[ast.expr]) -> Value | None:
        return self._sequence(args, "tuple")

    def _word_list(self, args: list[ast.expr]) -> Value | None:
        return self._sequence(args, "list")

    def _word_reversed(self, args: list[ast.expr]) -> Value | None:
        made = self._sequence(args, "list")
        return Seq(made.items[::-1], "list") if isinstance(made, Seq) and made.fixed else None

    def _word_range(self, args: list[ast.expr]) -> Value | None:
        values = [self.eval(a) for a in args]
        if all(isinstance(v, Lit) and isinstance(v.value, int) for v in values):
            return Range(range(*[static(v) for v in values]))
        return None

    def _word_zip(self, args: list[ast.expr]) -> Value | None:
        made = [self._sequence([a], "tuple") for a in args]
        if all(isinstance(m, Seq) and m.fixed for m in made):
            rows = zip(*[m.items for m in made if isinstance(m, Seq)], strict=False)
            return Seq(tuple(Seq(row) for row in rows), "list")
        return None

    def _word_enumerate(self, args: list[ast.expr]) -> Value | None:
        made = self._sequence(args[:1], "tuple")
        if isinstance(made, Seq) and made.fixed:
            return Seq(tuple(Seq((Lit(i), v)) for i, v in enumerate(made.items)), "list")
        return None

    def _fold_call(self, function: Callable[..., Any], args: list[ast.expr]) -> Value | None:
        try:
            return lift(function(*[static(self.eval(a)) for a in args]))
        except (Open, TypeError, ValueError):
            return None

    def _word_int(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(int, args)

    def _word_float(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(float, args)

    def _word_bool(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(bool, args)

    def _word_abs(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(abs, args)

    def _word_max(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(max, args)

    def _word_min(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(min, args)

    def _word_sum(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(sum, args)

    def _word_sorted(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(sorted, args)

    def _word_any(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(any, args)

    def _word_all(self, args: list[ast.expr]) -> Value | None:
        return self._fold_call(all, args)
