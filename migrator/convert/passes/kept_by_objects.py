"""Tensors that a plain object keeps from its constructor, and that a method of it may write to in place.

``state = State(h); state.step(x); return h``: the state holds h itself in torch, and what it adds is added to h.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.alias import Write, bound_arguments, check_calls, rebound
from migrator.convert.context import Context, Failure
from migrator.convert.kept import kept
from migrator.convert.memory import aliases
from migrator.convert.parts import is_part, shared, whole
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.starred import may_hold_tensors
from migrator.convert.updates import written_names
from migrator.convert.writers import target_of
from migrator.infer import ClassInfo
from migrator.infer import kinds as k


@converts(cst.Call, of=(k.Class,))
def kept_by_object(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``State(h)`` where what is written to its ``h`` is seen by others."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.statements or ctx.in_init:
        return
    kind = ctx.kind(node.func)
    own = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    if own is None or own.torch_base:
        return
    touched = _touched(ctx)
    for value, attributes in _kept(ctx, own, node) if touched else ():
        if attributes & touched and may_hold_tensors(ctx.kind(value)):
            _check(ctx, node, value)


def _kept(
    ctx: Context, own: ClassInfo, node: cst.Call
) -> Iterator[tuple[cst.BaseExpression, frozenset[str]]]:
    """What an object is made with, and the attributes that may hold it."""
    init = own.method("__init__")
    if init is not None:
        held = kept(ctx, init)
        for name, item in bound_arguments(node, init):
            yield item.value, frozenset(a for param, a, _ in held if param == name)
        return
    fields = [name for name in own.attributes if name not in own.methods]  # a dataclass
    for item in node.args:
        words = fields if item.keyword is None else [item.keyword.value]
        yield item.value, frozenset(words)


def _touched(ctx: Context) -> frozenset[str]:
    """The names of attributes of which something may be written in place: ``s.h += 1``, ``s.h.mul_(2)``, ``s.h[0] = 1``."""
    if ctx.touched is None:
        found = set(written_names(ctx))
        for node in ctx.source.index.of_type(cst.AugAssign, cst.Call, cst.Assign):
            target: cst.CSTNode | None = target_of(ctx, node)
            while isinstance(target, cst.Subscript):
                target = target.value
            if isinstance(target, cst.Attribute):
                found.add(target.attr.value)
        ctx.touched = frozenset(found)
    return ctx.touched


def _check(ctx: Context, node: cst.Call, value: cst.BaseExpression) -> None:
    assert ctx.frame is not None
    info, statement = ctx.frame.info, ctx.statements[-1].node
    facts = aliases(ctx, info)
    state = facts.before.get(statement)
    if state is None:
        return
    memory = facts.memory(value, state)
    later = facts.read_after(statement) - rebound(statement)
    for name, theirs in state.items():
        if name in later and shared(theirs, memory):
            raise _seen(node, value, f"`{name}`, which is read later")
    for one in sorted(memory):
        if one.startswith("attr:"):
            raise _seen(node, value, f"`{one.removeprefix('attr:')}`")
        if one.startswith("param:"):
            param = whole(one).removeprefix("param:")
            check_calls(ctx, Write(node, param, info, False, is_part(one)))


def _seen(node: cst.Call, value: cst.BaseExpression, what: str) -> Failure:
    made = syntax.code(value)
    return Failure(
        node,
        "MUT001",
        f"the object keeps `{made}` and may write to it in place, which also changes {what}",
        f"give it a copy (`{made}.clone()`)",
    )
