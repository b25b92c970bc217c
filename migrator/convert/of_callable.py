"""What memory a value has that is called: ``make(x)()``, ``functools.partial(f, x)()``, ``State(x).read()``."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.parts import TWICE, boxes, is_new
from migrator.convert.returned import returns_state
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def held_by_called(
    ctx: Context,
    within: FunctionInfo,
    func: cst.BaseExpression,
    called: FunctionInfo | None,
    closures: Container[str],
    state: Mapping[str, frozenset[str]],
    memory: Callable[[cst.BaseExpression], frozenset[str]],
) -> frozenset[str]:
    """The memory that a call may give of what is called, beside that of its arguments.

    Args:
      within: the function in which it is called.
      called: the function of the project that is known to run.
      closures: names of functions that are defined where it is called.
      memory: that of an expression.
    """
    if isinstance(ctx.kind(func), (k.Module, k.Class)):
        return frozenset()
    if isinstance(func, cst.Lambda) or (isinstance(func, cst.Name) and func.value in closures):
        return memory(func)  # it may return what it holds
    if isinstance(func, cst.Call) and ctx.facts.callee(func) != "builtins.getattr":
        return memory(func)
    if isinstance(func, cst.Attribute) and called is not None and called.has_receiver:
        if isinstance(ctx.kind(func.value), k.Module) or not returns_state(ctx, called):
            return frozenset()
        held = memory(func.value)
        made = isinstance(func.value, (cst.Call, cst.Subscript)) or is_made_here(held)
        return held if made else frozenset()
    if not isinstance(func, cst.Name):
        return frozenset()
    kept = {one for one in state.get(func.value, ()) if not one.startswith("attr:")}
    if any(one.startswith("param:") for one in kept):  # a function that is handed over is none
        calls = ctx.facts.tree.within(within.node.body, cst.Call)
        kept -= {f"param:{call.func.value}" for call in calls if isinstance(call.func, cst.Name)}
    return frozenset(kept)


def is_made_here(memory: frozenset[str]) -> bool:
    """Whether something is made by the function that has it, with what it holds."""
    return bool(memory) and is_new(memory - boxes(memory) - {TWICE})


def yielded(
    ctx: Context, info: FunctionInfo, statement: cst.CSTNode
) -> Iterator[cst.BaseExpression]:
    """What a line of a generator gives."""
    if not info.generator:
        return
    for node in ctx.facts.tree.within(statement, cst.Yield):
        value = node.value.item if isinstance(node.value, cst.From) else node.value
        if value is not None:
            yield value


def calls_by_name(node: cst.Call, info: FunctionInfo) -> bool:
    """Whether a call names the function that it runs: ``functools.partial(f, 3)(x)`` does not hand it ``x`` first."""
    if info.has_receiver:
        return True
    return isinstance(node.func, (cst.Name, cst.Attribute)) and _last(node.func) == info.short


def _last(node: cst.Name | cst.Attribute) -> str:
    return node.value if isinstance(node, cst.Name) else node.attr.value
