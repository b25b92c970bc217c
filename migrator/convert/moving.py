"""Whether an expression may be computed before the statement it stands in: what is called there may change what it reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Statement
from migrator.convert.passes.state_reads import evaluated
from migrator.convert.updates import updated_by, written_names
from migrator.infer import kinds as k


def keeps_order(ctx: Context, statement: Statement, expression: cst.CSTNode) -> bool:
    """Whether it makes no difference that an expression is computed before the rest of its statement."""
    if not statement.effects:
        return True
    inside = {id(node) for node in syntax.walk(expression)}
    moved = [effect for effect in statement.effects if id(effect) in inside]
    passed = [effect for effect in statement.effects if id(effect) not in inside]
    if moved and passed:
        return False  # two that change something
    if passed:
        return _unchanged(ctx, passed, syntax.walk(expression))
    # what stands to the left of it is computed after it now
    parts = evaluated(statement.node)
    beside = [node for part in parts for node in syntax.walk(part) if id(node) not in inside]
    return _unchanged(ctx, moved, beside)


def _unchanged(ctx: Context, effects: Sequence[cst.CSTNode], nodes: Iterable[cst.CSTNode]) -> bool:
    """Whether calls change nothing that expressions read."""
    read = set(_read(ctx, list(nodes)))
    if not read:
        return True
    written = _assigned(ctx) | written_names(ctx)
    written |= {n for one in effects if isinstance(one, cst.Call) for n in updated_by(ctx, one)}
    return "" not in read and read.isdisjoint(written)


def _read(ctx: Context, nodes: Sequence[cst.CSTNode]) -> Iterator[str]:
    """The names of the attributes of objects that expressions read; "" for an item of a list or a table."""
    called = {id(node.func) for node in nodes if isinstance(node, cst.Call)}
    for node in nodes:
        if not isinstance(node, (cst.Attribute, cst.Subscript)):
            continue
        if isinstance(ctx.kind(node.value), k.Tensor):
            continue  # of an array, which nobody changes
        if isinstance(node, cst.Subscript):
            if not isinstance(ctx.kind(node.value), (k.Tuple, k.Const)):
                yield ""
        elif id(node) not in called:
            yield node.attr.value


def _assigned(ctx: Context) -> frozenset[str]:
    """The names of the attributes that something in the file binds where it builds no object."""
    if ctx.rebound_names is None:
        tree = ctx.facts.tree
        built = {
            id(node)
            for info in ctx.facts.functions.values()
            if info.short == "__init__"
            for node in tree.within(info.node.body, cst.Attribute)
        }
        parts = tree.of_type(cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.Del, cst.For)
        targets = [getattr(part, "target", part) for part in parts]
        ctx.rebound_names = frozenset(
            node.attr.value
            for target in targets
            for node in syntax.walk(target)
            if isinstance(node, cst.Attribute) and id(node) not in built
        )
    return ctx.rebound_names
