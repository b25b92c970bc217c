"""Calls of another file's functions: what they write to, and whether they get what they were converted for."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.alias import (
    Write,
    bound_arguments,
    check_calls,
    reads_in,
    rebound,
    runs_often,
    taken_back,
)
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases
from migrator.convert.parts import OVERLAP, TWICE, is_part, shared, whole
from migrator.convert.starred import spread_arguments
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def check_handed_over(ctx: Context, node: cst.Call, info: FunctionInfo) -> None:
    """Raise a Failure where a call of another file's function cannot be left as it is."""
    if info.settled is None:
        return
    for name, item in bound_arguments(node, info):
        _check_kind(ctx, info, name, item)
    check_written(ctx, node, info)


def check_written(ctx: Context, node: cst.Call, info: FunctionInfo) -> None:
    """Raise a Failure where what another file's function writes to is read after a call."""
    if info.settled is None:
        return
    for name, item in spread_arguments(ctx, node, info):
        if item.star:
            continue  # told below
        if name not in info.settled.mutates or _is_a_width(ctx, info, name, item):
            continue
        if not taken_back(ctx, node, info, item):
            _check_write(ctx, node, info, name, item.value)
    if info.settled.mutates and any(item.star for item in node.args):
        raise _changes(node, info, sorted(info.settled.mutates)[0], "what a starred argument holds")


def _is_a_width(ctx: Context, info: FunctionInfo, name: str, item: cst.Arg) -> bool:
    """Whether ``width = doubled(width)`` stands where a model is built, and nothing says that it is of tensors: ``n *= 2``."""
    unknown = isinstance(info.params.get(name), k.Unknown)
    return unknown and ctx.in_init and isinstance(ctx.kind(item.value), k.Unknown)


def _changes(node: cst.CSTNode, info: FunctionInfo, param: str, what: str) -> Failure:
    return Failure(
        node,
        "MUT003",
        f"{info.short}() changes its argument `{param}` in place, and {what} is read later",
        "work on a copy, or return the changed tensor",
    )


def _check_write(
    ctx: Context, node: cst.Call, info: FunctionInfo, param: str, value: cst.BaseExpression
) -> None:
    """The memory that the function writes to must not be read any more, nor belong to somebody else."""
    from migrator.convert.passes.freezing import forward_reaches

    frame = ctx.frame
    if frame is None or not ctx.statements:
        raise _changes(node, info, param, "the value")
    facts = aliases(ctx, frame.info)
    statement = ctx.statements[-1].node
    state = facts.before.get(statement)
    if state is None:
        raise _changes(node, info, param, "the value")
    if k.scalar_type(ctx.kind(value)) is None and runs_often(ctx, statement, node):
        told = ctx.kind(value) != k.UNKNOWN or info.params.get(param) != k.UNKNOWN
        if told or forward_reaches(ctx, frame.info):
            raise _changes(node, info, param, f"`{syntax.code(value)}`")
    memory = facts.memory(value, state)
    later = facts.read_after(statement) - rebound(statement)
    inside = syntax.names(node)
    again = {n for n in state if reads_in(statement, n) > inside.get(n, 0)}
    for name, theirs in state.items():
        if shared(memory, theirs) and name in later | again:
            raise _changes(node, info, param, f"`{name}`")
    if memory & {TWICE, OVERLAP}:
        raise _changes(node, info, param, "what it holds twice")
    for one in sorted(memory):
        kind, _, name = whole(one).partition(":")
        if kind == "attr":
            raise _changes(node, info, param, f"`{name}`")
        if kind == "param":
            try:
                check_calls(ctx, Write(node, name, frame.info, False, is_part(one)))
            except Failure:
                note_mutation(ctx, frame.info, name)  # who calls it in another file is told too
                raise


def note_mutation(ctx: Context, info: FunctionInfo, param: str) -> None:
    """Remember that a function writes to the memory of a parameter."""
    ctx.mutated.setdefault(info, set()).add(param)


# --- kinds -----------------------------------------------------------------------------------------------------------


def _merely_hands_on(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a parameter without a hint that its function does nothing with but hand it to others.

    It is taken for a tensor then; who works with it knows better."""
    frame, tree = ctx.frame, ctx.facts.tree
    if frame is None or not isinstance(node, cst.Name) or not tree.has(frame.info.node):
        return False
    function = frame.info.node
    hints = {p.name.value: p.annotation for p in tree.within(function.params, cst.Param)}
    if node.value not in hints or hints[node.value] is not None:
        return False
    for one in tree.within(function.body, cst.Name):
        if one.value != node.value:
            continue
        *_, call, outer = tree.around(one)
        if not isinstance(outer, cst.Arg) or outer.value is not one or outer.star:
            return False
        if (ctx.facts.callee(call) or "").startswith(("torch.", "Tensor.", "builtins.")):
            return False
    return True


def _check_kind(ctx: Context, info: FunctionInfo, param: str, item: cst.Arg) -> None:
    """A function was converted for what its own file says of its parameters; something else is a finding."""
    wanted, given = _plain(info.params.get(param, k.UNKNOWN)), ctx.kind(item.value)
    if isinstance(wanted, k.Tensor) and isinstance(given, k.Tensor):
        differs = _differ(wanted.rank, given.rank) or _differ(wanted.dtype, given.dtype)
    else:
        differs = _differ(_category(wanted), _category(given))
    if differs and not (given == k.TENSOR and _merely_hands_on(ctx, item.value)):
        raise Failure(
            item.value,
            "API005",
            f"`{param}` of {info.short}() is {_words(wanted)} where that is defined, and "
            f"{_words(given)} here",
            "say what it may be with a type hint where it is defined",
        )


def _differ(a: object, b: object) -> bool:
    return a is not None and b is not None and a != b


def _plain(kind: k.Kind) -> k.Kind:
    return kind.inner if isinstance(kind, k.Optional) else kind


def _category(kind: k.Kind) -> str | None:
    if isinstance(kind, k.Tensor):
        return "tensor"
    if isinstance(kind, (k.Tuple, k.Sequence)):
        return "sequence"
    scalar = k.scalar_type(kind)
    return "number" if scalar in ("int", "float", "number", "complex") else None


def _words(kind: k.Kind) -> str:
    if isinstance(kind, k.Tensor):
        rank = f" of {kind.rank} axes" if kind.rank is not None else ""
        return f"a tensor{rank}{f' of {kind.dtype}' if kind.dtype else ''}"
    return {"sequence": "a sequence", "number": "a number"}.get(
        _category(kind) or "", "something else"
    )
