"""What a function may return memory of: which of its arguments, and whether an attribute that others read too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.overriding import by_place, overriding
from migrator.convert.parts import whole
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

if TYPE_CHECKING:
    from migrator.convert.memory import Aliases

ANY = "*"
"""Stands for all parameters of a function."""


def returned_arguments(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The parameters of which a function may return memory; a recursive one, or one that fills containers, any.

    Of a method, what those return that heirs have in its place."""
    found = _returned(ctx, info)
    for other in overriding(ctx, info):
        if ctx.aliases.get(other, other) is not None:  # not the one that is being looked at
            theirs = _returned(ctx, other)
            found |= {one if one == ANY else by_place(info, other, one) for one in theirs}
    return found


def _returned(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    if info.settled is not None:
        return info.settled.returned
    if info in ctx.aliases and ctx.aliases[info] is None:
        return frozenset({ANY})
    from migrator.convert.memory import aliases

    facts = aliases(ctx, info)
    found = {m for m in facts.given.all | _kept(facts) if m.startswith("param:")}
    if found and fills(ctx, info.node):
        return frozenset({ANY})
    return frozenset(whole(one).partition(":")[2] for one in found)


def _kept(facts: Aliases) -> frozenset[str]:
    """The memory that attributes are given in a function that returns them: ``self.last = x``, ``return self.last``."""
    names = {one.removeprefix("attr:") for one in facts.given.all if one.startswith("attr:")}
    found = frozenset[str]()
    for line, state in facts.before.items() if names else ():
        for one in line.body if isinstance(line, cst.SimpleStatementLine) else ():
            if not isinstance(one, cst.Assign):
                continue
            if any(syntax.code(target.target) in names for target in one.targets):
                found |= facts.memory(one.value, state)
    return found


def returns_argument(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function may return memory of one of its arguments."""
    return bool(returned_arguments(ctx, info))


def returned_state(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The attributes that a function may return, ``attr:self.total``, which others read too.

    A recursive one is judged without.
    """
    found = _own_state(ctx, info)
    for other in overriding(ctx, info):
        found |= _own_state(ctx, other)
    return found


def _own_state(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    if info.settled is not None:
        return info.settled.returned_state
    if info in ctx.aliases and ctx.aliases[info] is None:
        return frozenset()
    from migrator.convert.memory import aliases

    return frozenset(m for m in aliases(ctx, info).given.all if m.startswith("attr:"))


def returns_state(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function may return an attribute, which others read too."""
    return bool(returned_state(ctx, info))


_FILLING = frozenset("append appendleft extend insert update setdefault add".split())


def fills(ctx: Context, function: cst.FunctionDef) -> bool:
    """Whether a function puts something into a list, a dict or an object, which it may be handed; a number is nothing."""
    for node in ctx.facts.tree.within(function.body, cst.Call, cst.Assign, cst.AugAssign):
        if isinstance(node, cst.Call):
            func = node.func
            filling = isinstance(func, cst.Attribute) and func.attr.value in _FILLING
            if filling and not isinstance(ctx.kind(func.value), k.Tensor):  # type: ignore[attr-defined]
                return True
            continue
        several = isinstance(node, cst.Assign)
        targets = [t.target for t in node.targets] if several else [node.target]
        if not _is_number(ctx.kind(node.value)) and any(_is_entry(ctx, t) for t in targets):
            return True
    return False


def _is_entry(ctx: Context, target: cst.BaseExpression) -> bool:
    """Whether a target is an item of something that is no tensor, or an attribute of something else than ``self``."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_is_entry(ctx, element.value) for element in target.elements)
    if isinstance(target, cst.Attribute):
        return not ctx.is_self(target.value)
    return isinstance(target, cst.Subscript) and not isinstance(ctx.kind(target.value), k.Tensor)


def _is_number(kind: k.Kind) -> bool:
    return k.scalar_type(kind.inner if isinstance(kind, k.Optional) else kind) is not None
