"""Whether the arguments of a call fit a definition's signature."""

from __future__ import annotations

import ast
from collections.abc import Collection
from functools import cache

import libcst as cst

from migrator.infer import kinds as k
from rules.definitions import Rule

ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
"""Keywords that torch accepts in numpy's spelling."""


def spelled(name: str, known: Collection[str]) -> str:
    """The parameter that a keyword means: torch takes numpy's spellings, and ``split_size`` for both forms."""
    if name in known:
        return name
    if name == "split_size":
        return next((p for p in known if p.startswith("split_size")), name)
    if name in ("indices", "sections") and "indices_or_sections" in known:
        return "indices_or_sections"
    return ALIASES.get(name, name)


Args = list[tuple[str | None, k.Kind]]
"""Keyword (None, name, "*" or "**") and kind of each argument."""


def signature_fits(rule: Rule, args: Args) -> bool | None:
    """Whether a call's arguments bind to a definition and satisfy its annotations (None: cannot be told)."""
    queue = [p for p in rule.params if p.mode == "positional"]
    vararg = next((p for p in rule.params if p.mode == "*"), None)
    given: set[str] = set()
    answer: bool | None = True
    for keyword, kind in args:
        if keyword == "*" and vararg is not None and len(queue) <= 1:
            return answer
        if keyword in ("*", "**"):
            return None if answer is not False else False
        if keyword is None:
            if queue:
                param = queue.pop(0)
            elif vararg is not None:
                continue
            else:
                return False
        else:
            name = spelled(keyword, rule.by_name)
            if name == "out":
                continue
            if name not in rule.by_name:
                return False
            param = rule.by_name[name]
            queue = [p for p in queue if p.name != name]
        given.add(param.name)
        if param.annotation and param.mode in ("positional", "keyword"):
            fit = fits(param.annotation, kind)
            if fit is False and not (kind == k.NONE and isinstance(param.default, ast.Constant)):
                return False
            if fit is None:
                answer = None
    for param in rule.params:
        needed = param.default is None and param.mode in ("positional", "keyword")
        if needed and param.name not in given and param.name != "rngs":
            return False
    return answer


@cache
def _literals(annotation: str) -> tuple[object, ...]:
    return tuple(ast.literal_eval(f"[{annotation[8:-1]}]"))


def fits(annotation: str, kind: k.Kind) -> bool | None:
    """Whether a kind satisfies a parameter's annotation: True, False, or None when it cannot be told."""
    annotation = annotation.strip()
    if not annotation or annotation == "Any":
        return True
    if "|" in annotation:
        answers = [fits(part, kind) for part in annotation.split("|")]
        return True if True in answers else (None if None in answers else False)
    if annotation.startswith("Literal["):
        # a further definition of the name covers every other value
        return isinstance(kind, k.Const) and kind.value in _literals(annotation)
    if isinstance(kind, (k.Unknown, k.Optional)):
        return None
    base = annotation.partition("[")[0]
    scalar = k.scalar_type(kind)
    if base == "None":
        return kind == k.NONE
    if base == "Tensor":
        if not isinstance(kind, k.Tensor):
            return False
        wanted = annotation.partition("[")[2].strip("]\"' ")
        if wanted in ("int", "float", "bool", "complex"):
            return None if kind.dtype is None else kind.dtype == wanted
        return True
    if base == "Array":
        return isinstance(kind, k.Tensor) or kind == k.Other("numpy.ndarray")
    if base in ("int", "Int"):
        return True if scalar == "int" else (None if scalar == "number" else False)
    if base == "float":
        return True if scalar in ("int", "float") else (None if scalar == "number" else False)
    if base in ("Number", "Scalar", "complex"):
        return scalar in ("int", "float", "bool", "number", "complex")
    if base in ("bool", "Bool"):
        return scalar == "bool"
    if base == "str":
        return scalar == "str"
    if base == "DType":
        wanted = annotation.partition("[")[2].strip("]\"' ")
        if wanted and isinstance(kind, k.DType):
            # a definition for one class of dtypes stands before one for all
            return (kind.name or "").startswith(
                wanted[0] if wanted != "complex" else ("complex", "cfloat", "cdouble")
            )
        return isinstance(kind, k.DType)
    if base == "Device":
        return isinstance(kind, k.Device) or scalar == "str"
    if base == "Ints":
        if isinstance(kind, k.Sequence):
            return True
        return scalar == "int" or isinstance(kind, k.Tuple)
    if base in ("tuple", "list", "Shape", "Sequence", "Tensors"):
        return isinstance(kind, (k.Tuple, k.Sequence))
    if base == "Callable":
        return isinstance(kind, (k.Function, k.Class, k.Module))
    if base == "Generator":
        return isinstance(kind, k.Generator)
    return None


def of_integers(args: Args) -> bool:
    """Whether ``torch.arange`` of these counts in integers."""
    given = [kind for key, kind in args if key in (None, "start", "end", "step", "*", "**")]
    return bool(given) and all(k.scalar_type(kind) == "int" for kind in given)


def moves_new_parameter(func: cst.Attribute, receiver: k.Kind, args: Args) -> bool:
    """Whether ``nn.Parameter(x).to(device)`` is the parameter: where it is on the device already, nothing is made."""
    new = isinstance(func.value, cst.Call) and isinstance(receiver, k.Tensor)
    named = func.attr.value in ("to", "cuda", "cpu") and getattr(receiver, "role", "") == "param"
    return new and named and not any(isinstance(kind, (k.DType, k.Tensor)) for _, kind in args)


def adds_up(name: str, first: k.Kind, args: Args) -> bool:
    """Whether integers or truth values are added or multiplied, which torch does in int64."""
    short = name.rpartition(".")[2]
    if short == "count_nonzero":
        return True
    whole = isinstance(first, k.Tensor) and first.dtype in ("bool", "int")
    return whole and short in _SUMS and not any(keyword in ("dtype", "**") for keyword, _ in args)


_SUMS = frozenset("sum prod cumsum cumprod".split())
