"""``setattr(self, f"state_{i}", s)``, ``self.state_0 = s``: attributes that a class registers under made-up names.

``register_buffer(f"state_{i}", …)`` makes a Variable of an attribute that no line names. Whoever gives it another value
writes to that Variable, as torch registers the new tensor in place of the old one.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert.alias import aliases, innermost, is_variable
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.facts import ClassInfo
from rules.definitions import module_file


@converts(cst.Call, called=("builtins.setattr",))
def put_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``setattr(self, f"state_{i}", s)`` outside of a constructor."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.setattr" or len(node.args) != 3:
        return None
    name = node.args[1].value
    if not _runs_later(ctx) or not ctx.is_self(node.args[0].value):
        return None
    if isinstance(name, cst.SimpleString) or not (
        made_up(ctx.owner, ctx) or _may_name_one(ctx.owner, texts.pattern(name))
    ):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.named"), "put")
    return syntax.changed(node, func=cst.Name(helper), args=[rw.visit(a) for a in node.args])


def _registers(ctx: Context) -> bool:
    return not {"register_buffer", "register_parameter", "setattr"}.isdisjoint(ctx.words)


@converts(cst.Assign, when=_registers, targets=(cst.Attribute,))
def assigned(rw: Rewriter, node: cst.Assign) -> None:
    """``self.state_0 = s`` would put an array in the place of the Variable."""
    for one in node.targets:
        _check(rw.ctx, node, one.target)


@converts(cst.AugAssign, when=lambda ctx: _registers(ctx) or "getattr" in ctx.words)
def added_to(rw: Rewriter, node: cst.AugAssign) -> None:
    """``self.state_0 += 1``, which a Variable refuses."""
    _check(rw.ctx, node, node.target)
    _check_found(rw.ctx, node, node.target)


@converts(
    cst.Assign,
    when=lambda ctx: "getattr" in ctx.words,
    targets=(cst.Subscript, cst.Attribute),
)
def part_of_found(rw: Rewriter, node: cst.Assign) -> None:
    """``s = getattr(self, f"state_{i}")`` and then ``s[0] = 1``, ``s.data = t``, which an array refuses."""
    _check_found(rw.ctx, node, node.targets[0].target)


def _check_found(ctx: Context, node: cst.CSTNode, target: cst.BaseExpression) -> None:
    held, written = target, False
    while isinstance(held, cst.Subscript) or (
        isinstance(held, cst.Attribute) and held.attr.value == "data"
    ):
        held, written = held.value, True
    if not written or not isinstance(held, cst.Name) or not isinstance(ctx.kind(held), k.Unknown):
        return
    if not _runs_later(ctx) or not ctx.statements:
        return
    state = aliases(ctx, innermost(ctx)).before.get(ctx.statements[-1].node, {})
    memory = sorted(state.get(held.value, ()))
    found = [one for one in memory if one.startswith("attr:getattr(self,")]
    if found and (made_up(ctx.owner, ctx) or _may_name_one(ctx.owner, ".*")):
        what = f"`{held.value}` may be a tensor: writing it in place also changes `{found[0][5:]}`"
        raise Failure(node, "MUT001", what, "assign the new value to the attribute")


def _check(ctx: Context, node: cst.CSTNode, target: cst.BaseExpression) -> None:
    if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value):
        return
    kind = ctx.kind(target)
    if isinstance(kind, k.Module) or is_variable(kind) or not _runs_later(ctx):
        return
    name = target.attr.value
    if any(re.fullmatch(one, name) for one in made_up(ctx.owner, ctx)) and not _named(ctx, name):
        raise Failure(
            node,
            "MUT001",
            f"`self.{name}` may be a buffer that is registered under a made-up name",
            "register it under its name",
        )


def _runs_later(ctx: Context) -> bool:
    """Whether a method runs when the module is there, not while it is made."""
    return (
        ctx.frame is not None and ctx.owner is not None and not ctx.plan.builds_time(ctx.frame.info)
    )


def _named(ctx: Context, name: str) -> bool:
    """Whether a constructor gives ``self`` an attribute of a name in so many words."""
    found = (one for line in ctx.source.index.of_type(cst.Assign) for one in line.targets)
    return any(
        isinstance(one.target, cst.Attribute) and one.target.attr.value == name
        for one in found
        if any(
            isinstance(outer, cst.FunctionDef) and outer.name.value == "__init__"
            for outer in ctx.facts.tree.around(one.target)
        )
    )


def _may_name_one(owner: ClassInfo | None, pattern: str) -> bool:
    """Whether a made-up name may be that of a parameter or buffer of a class."""
    tables = [one.attributes for one in owner.lineage()] if owner is not None else []
    return any(
        re.fullmatch(pattern, name)
        for table in tables
        for name, kind in table.items()
        if is_variable(kind.inner if isinstance(kind, k.Optional) else kind)
    )


def made_up(owner: ClassInfo | None, ctx: Context) -> list[str]:
    """What the names are like, as regular expressions, under which a class registers tensors that no line names."""
    if owner is None:
        return []
    if owner not in ctx.made_up_names:
        ctx.made_up_names[owner] = _patterns(owner, ctx)
    return ctx.made_up_names[owner]


def _patterns(owner: ClassInfo, ctx: Context) -> list[str]:
    found: list[str] = []
    heirs = [c for c in ctx.facts.classes.values() if owner in c.lineage()]
    for info in [*owner.lineage(), *heirs]:
        if info.settled is not None:
            continue
        for call in ctx.facts.tree.within(info.node, cst.Call):
            func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            word = func.value if isinstance(func, cst.Name) else ""
            given = [one.value for one in call.args]
            if word in ("register_buffer", "register_parameter") and given:
                name = given[0]
            elif word == "setattr" and len(given) == 3 and is_variable(ctx.facts.kind(given[2])):
                name = given[1]
            else:
                continue
            if not isinstance(name, cst.SimpleString):
                found.append(texts.pattern(name))
    return found
