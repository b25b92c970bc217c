"""What memory a value has that is called: ``make(x)()``, ``functools.partial(f, x)()``, ``State(x).read()``."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import TypeGuard

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.parts import TWICE, boxes, is_new
from migrator.convert.returned import returns_state
from migrator.convert.sharing import OVERLAPPING, VIEWS, of_scipy
from migrator.convert.states import all_memory
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_PARTIAL = "functools.partial"
_RUNNING = frozenset(
    {_PARTIAL, "builtins.map", "builtins.filter", "torch.utils.checkpoint.checkpoint"}
)
"""What is handed something to call first."""


def given_to(ctx: Context, node: cst.Call) -> Sequence[cst.Arg]:
    """The arguments of a call of which it may give memory: no layer that it runs, nor sizes of axes."""
    first, name = node.args[0] if node.args else None, ctx.facts.callee(node) or ""
    if name.startswith("einops."):
        named = [a for a in node.args if a.keyword is not None and a.keyword.value == "tensor"]
        return named or node.args[:1]
    if first is None or name not in _RUNNING:
        return node.args
    return node.args[1:] if isinstance(ctx.kind(first.value), k.Module) else node.args


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
    kind = ctx.kind(func)
    if isinstance(func, cst.Call) and ctx.facts.callee(func) == _PARTIAL:
        return memory(func)
    if isinstance(kind, k.Class) or (isinstance(kind, k.Module) and not isinstance(func, cst.Name)):
        return frozenset()
    if isinstance(func, cst.Lambda) or (isinstance(func, cst.Name) and func.value in closures):
        return memory(func)  # it may return what it holds
    if isinstance(func, cst.Call) and ctx.facts.callee(func) != "builtins.getattr":
        return memory(func)
    if isinstance(func, (cst.Subscript, cst.IfExp, cst.BooleanOperation, cst.NamedExpr)):
        return memory(func)
    if isinstance(func, cst.Attribute) and f"attr:{syntax.code(func)}" in all_memory({**state}):
        return frozenset({f"attr:{syntax.code(func)}"})  # self.go = lambda: x
    if isinstance(func, cst.Attribute) and called is not None and called.has_receiver:
        if isinstance(ctx.kind(func.value), k.Module) or not returns_state(ctx, called):
            return frozenset()
        held = memory(func.value)
        made = isinstance(func.value, (cst.Call, cst.Subscript)) or is_made_here(held)
        return held if made else frozenset()
    if not isinstance(func, cst.Name):
        return frozenset()
    if func.value == "globals":
        return frozenset({"attr:globals()"})
    kept = {one for one in state.get(func.value, ()) if not one.startswith("attr:")}
    if isinstance(kind, k.Module):  # a layer, or one that is bound to what it will be called with
        kept = {one for one in kept if one.startswith("new:")}
    if any(one.startswith("param:") for one in kept):  # a function that is handed over is none
        calls = ctx.facts.tree.within(within.node.body, cst.Call)
        kept -= {f"param:{call.func.value}" for call in calls if isinstance(call.func, cst.Name)}
    return frozenset(kept)


def held_by_handed(
    ctx: Context,
    node: cst.Call,
    closures: Container[str],
    memory: Callable[[cst.BaseExpression], frozenset[str]],
) -> frozenset[str]:
    """The memory of the functions that a call hands over, which may be called there and give what they hold."""
    functions = (
        one.value
        for one in node.args
        if isinstance(one.value, cst.Lambda)
        or (isinstance(one.value, cst.Name) and one.value.value in closures)
        or (isinstance(one.value, cst.Call) and ctx.facts.callee(one.value) == _PARTIAL)
    )
    return frozenset().union(*map(memory, functions))


def writes(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a method of the class of this one may write in place to what this one has given before."""
    if info.owner is None or info.settled is not None:
        return info.settled is not None
    others = ctx.facts.classes.values()
    heirs = [one for one in others if info.owner in one.lineage()]
    for method in [m for one in (*info.owner.lineage(), *heirs) for m in one.methods.values()]:
        if method.settled is not None:
            return True
        body = method.node.body
        if ctx.facts.tree.within(body, cst.AugAssign):
            return True
        for call in ctx.facts.tree.within(body, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value.endswith("_"):
                return True
        for target in ctx.facts.tree.within(body, cst.AssignTarget):
            if isinstance(target.target, cst.Subscript):
                return True
    return False


def gives_new(
    ctx: Context, target: cst.CSTNode, value: cst.CSTNode, memory: frozenset[str]
) -> TypeGuard[cst.Tuple | cst.List]:
    """``w, i = torch.topk(x, 2)``: each result of a function of torch that makes no view is a tensor of its own."""
    if not isinstance(target, (cst.Tuple, cst.List)) or not isinstance(value, cst.Call):
        return False
    called, fresh = ctx.facts.callee(value) or "", {m[:4] for m in memory} == {"new:"}
    apart = called.rpartition(".")[2] not in OVERLAPPING | VIEWS
    known = called.startswith(("torch.", "Tensor.")) or of_scipy(ctx, value)
    return fresh and apart and known and len(memory) == 1


def mapped(
    ctx: Context,
    target: cst.CSTNode,
    value: cst.CSTNode,
    state: Mapping[str, frozenset[str]],
    memory: Callable[[cst.BaseExpression, dict[str, frozenset[str]]], frozenset[str]],
) -> list[tuple[cst.CSTNode, frozenset[str]]]:
    """``q, k = map(lambda t: t.mT, (q, k))``: each name and the memory of what the function is given for it."""
    if not isinstance(target, (cst.Tuple, cst.List)) or not isinstance(value, cst.Call):
        return []
    if ctx.facts.callee(value) != "builtins.map" or len(value.args) != 2:
        return []
    function, given = (arg.value for arg in value.args)
    if not isinstance(function, cst.Lambda) or not isinstance(given, (cst.Tuple, cst.List)):
        return []
    elements, params = [*target.elements, *given.elements], function.params.params
    uneven = len(target.elements) != len(given.elements) or len(params) != 1
    if uneven or any(isinstance(one, cst.StarredElement) for one in elements):
        return []
    pairs, of = zip(target.elements, given.elements, strict=True), params[0].name.value
    found = [(name.value, memory(one.value, {**state})) for name, one in pairs]
    return [(name, memory(function.body, {**state, of: one})) for name, one in found]


def is_made_here(memory: frozenset[str]) -> bool:
    """Whether something is made by the function that has it, with what it holds."""
    return bool(memory) and (bool(boxes(memory)) or is_new(memory - {TWICE}))


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
    if not isinstance(node.func, (cst.Name, cst.Attribute)):
        return info.has_receiver and not isinstance(node.func, cst.Call)
    return info.has_receiver or _last(node.func) == info.short


def _last(node: cst.Name | cst.Attribute) -> str:
    return node.value if isinstance(node, cst.Name) else node.attr.value
