"""What modules keep in attributes and containers: the kinds of it, and the statements that put it there."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

PUTTING = (cst.Assign, cst.AugAssign, cst.Call)
"""What may put something into a container."""


def put_into(node: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """A container and what is put into it: by append, under a key, or as a list that is added."""
    held: cst.BaseExpression | None = None
    value: cst.BaseExpression | None = None
    if isinstance(node, cst.Assign):
        target = node.targets[0].target
        if isinstance(target, cst.Subscript):
            held, value = target.value, node.value
    elif isinstance(node, cst.AugAssign):
        held, value = node.target, _element(node.value)
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        held, word = node.func.value, node.func.attr.value
        if word in ("append", "insert"):
            value = node.args[-1].value
        elif word == "extend":
            value = _element(node.args[0].value)
    return (held, value) if held is not None and value is not None else None


def _element(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What stands for the items of a list that is written out or made by a comprehension."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return node.elements[0].value if node.elements else None
    return node.elt if isinstance(node, (cst.ListComp, cst.GeneratorExp)) else None


def constructing(ctx: Context, owner: ClassInfo) -> Iterator[FunctionInfo]:
    """The constructor of a class, those of its relatives in the file, and the methods that they call."""
    related = [
        c for c in ctx.facts.classes.values() if owner in c.lineage() or c in owner.lineage()
    ]
    waiting = [c.methods["__init__"] for c in related if "__init__" in c.methods]
    seen: list[FunctionInfo] = []
    while waiting:
        method = waiting.pop()
        if method in seen or method.owner not in related or method.settled is not None:
            continue
        seen.append(method)
        waiting += [called for called in method.calls if isinstance(called, FunctionInfo)]
    yield from seen


def is_parameter(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and kind.role == "param"


def inner(kind: k.Kind) -> tuple[k.Kind, ...]:
    if isinstance(kind, k.Tuple):
        return kind.items
    if isinstance(kind, k.Sequence):
        return (kind.item,)
    if isinstance(kind, k.Mapping):
        return (kind.value, *(value for _, value in kind.items))
    return ()


def levels(kind: k.Kind) -> Iterator[k.Kind]:
    """A kind, the kinds of what it holds, of what they hold, and so on."""
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    yield kind
    for one in inner(kind):
        yield from levels(one)


def holds_tensor(kind: k.Kind) -> bool:
    return any(isinstance(part, k.Tensor) for part in levels(kind))


def holds_parameter(kind: k.Kind) -> bool:
    return any(is_parameter(part) for part in levels(kind))


def plainly_kept(node: cst.CSTNode) -> Failure:
    """For modules that torch does not know of."""
    what = "a plain dict, tuple or nested list registers no modules: torch trains and saves them only by other names"
    advice = "use nn.ModuleDict or nn.ModuleList if they are meant to be part of it"
    return Failure(node, "API008", what, advice)
