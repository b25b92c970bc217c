"""Parameters and buffers made of one tensor: in torch they share its memory, and who writes to one changes all.

An optimizer writes to every parameter. Variables of Flax hold arrays of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases, shared
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.updates import written_names
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_MAKING = frozenset({"torch.nn.Parameter", "torch.nn.Buffer"})


@dataclass(frozen=True)
class _Made:
    """A new parameter or buffer of a constructor and the memory of the tensor that it is made of.

    ``name``: the attribute it becomes, None where only a run tells; ``of``: the state it is made of, and whether that
    is a buffer, but for what it replaces (``fc.weight = nn.Parameter(fc.weight.half())``).
    """

    statement: cst.CSTNode
    memory: frozenset[str]
    name: str | None
    buffer: bool
    of: tuple[tuple[str, bool], ...] = ()
    again: bool = False


@converts(cst.SimpleStatementLine)
def made_of_one_tensor(rw: Rewriter, node: cst.SimpleStatementLine) -> None:
    """Raise a Failure for the second Variable that is made of a tensor, if one of them is ever written."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.in_init:
        return
    every = _made(ctx, ctx.frame.info)
    for i, one in enumerate(every):
        if one.statement is not node:
            continue
        others = [other for other in every[:i] if shared(other.memory, one.memory)]
        others += [_Made(node, one.memory, name, buffer) for name, buffer in one.of]
        if any(_is_written(ctx, one, other) for other in (*others, *([one] if one.again else []))):
            raise Failure(
                node,
                "MUT001",
                "parameters or buffers are made of one tensor, whose memory they share in torch",
                "make each of a copy (`.clone()`), or give one parameter both names if they are tied",
            )


def _is_written(ctx: Context, *several: _Made) -> bool:
    """Whether one of these may be written in place: parameters are, by an optimizer."""
    names = written_names(ctx)
    return any(not one.buffer or one.name is None or one.name in names for one in several)


def _made(ctx: Context, info: FunctionInfo) -> list[_Made]:
    if info not in ctx.made_variables:
        ctx.made_variables[info] = list(_find(ctx, info))
    return ctx.made_variables[info]


def _find(ctx: Context, info: FunctionInfo) -> Iterator[_Made]:
    facts = aliases(ctx, info)
    for statement, _, loops in facts.order:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        state = facts.before[statement]
        for node in ctx.facts.tree.below(statement):
            if not isinstance(node, cst.Call):
                continue
            value = _value(ctx, node)
            if value is None or ctx.facts.kind(value) == k.NONE:
                continue
            memory = facts.memory(value, state)
            before = [*(facts.before[loop] for loop in loops)]
            if _is_repeated(ctx, node):
                before.append(state)
            again = any(shared(memory, one) for each in before for one in each.values())
            name, own = _target(ctx, statement, node)
            buffer = ctx.facts.callee(node) != "torch.nn.Parameter" or _is_untrained(node)
            of = tuple(_state(ctx, value, memory, own))
            yield _Made(statement, memory, name, buffer, of, again)


def _state(
    ctx: Context, value: cst.BaseExpression, memory: frozenset[str], own: str
) -> Iterator[tuple[str, bool]]:
    """``self.a`` in ``nn.Parameter(self.a.data[0])``: parameters and buffers whose memory a value is."""
    for node in ctx.facts.tree.below(value):
        path = syntax.code(node) if isinstance(node, cst.Attribute) else ""
        kind = ctx.kind(node)
        if f"attr:{path}" in memory and path != own and isinstance(kind, k.Tensor) and kind.role:
            yield node.attr.value, kind.role == "buffer"


def _is_untrained(call: cst.Call) -> bool:
    """``nn.Parameter(w, requires_grad=False)``, which no optimizer writes to."""
    values = [a.value for a in call.args[1:] if not a.star]
    return any(isinstance(one, cst.Name) and one.value == "False" for one in values)


def _is_repeated(ctx: Context, node: cst.Call) -> bool:
    """Whether a comprehension makes several of one tensor: ``[nn.Parameter(w) for _ in range(3)]``."""
    names = set(syntax.names(node))
    for parent in ctx.facts.tree.around(node):
        if isinstance(parent, (cst.ListComp, cst.GeneratorExp, cst.DictComp)):
            bound = {name for one in _targets(parent.for_in) for name in syntax.names(one)}
            if not bound & names:
                return True
    return False


def _targets(clause: cst.CompFor | None) -> Iterator[cst.CSTNode]:
    while clause is not None:
        yield clause.target
        clause = clause.inner_for_in


def _value(ctx: Context, call: cst.Call) -> cst.BaseExpression | None:
    """The tensor that a call makes a parameter or buffer of."""
    func = call.func
    if ctx.facts.callee(call) in _MAKING:
        named = [a for a in call.args if a.keyword is None or a.keyword.value == "data"]
        return named[0].value if named and not named[0].star else None
    if not isinstance(func, cst.Attribute) or func.attr.value != "register_buffer":
        return None
    for i, item in enumerate(call.args):
        keyword = item.keyword.value if item.keyword is not None else None
        if keyword == "tensor" or (keyword is None and i == 1 and not item.star):
            made = isinstance(item.value, cst.Call) and ctx.facts.callee(item.value) in _MAKING
            return None if made else item.value
    return None


def _target(
    ctx: Context, statement: cst.SimpleStatementLine, call: cst.Call
) -> tuple[str | None, str]:
    """The attribute that a new Variable becomes, and its path."""
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "register_buffer":
        kind = ctx.facts.kind(call.args[0].value)
        if isinstance(kind, k.Const) and isinstance(kind.value, str):
            return kind.value, f"{syntax.code(call.func.value)}.{kind.value}"
        return None, ""
    for small in statement.body:
        if isinstance(small, cst.Assign) and isinstance(small.targets[0].target, cst.Attribute):
            target = small.targets[0].target
            return target.attr.value, syntax.code(target)
    return None, ""
