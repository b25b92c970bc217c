"""Whether an expression may be computed before the statement it stands in: what is called there may change what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Statement
from migrator.convert.passes.state_reads import evaluated
from migrator.convert.updates import updated_by, written_names
from migrator.infer import kinds as k


def keeps_order(ctx: Context, statement: Statement, expression: cst.CSTNode) -> bool:
    """Whether it makes no difference that an expression is computed before the rest of its statement."""
    tree = ctx.facts.tree
    if not tree.has(expression):
        return not statement.effects
    inside = {id(node) for node in syntax.walk(expression)}
    beside = [
        node
        for part in evaluated(statement.node)
        for node in tree.below(part)
        if id(node) not in inside and not tree.holds(node, expression)
    ]
    start = tree.place(expression)
    left = [node for node in beside if tree.place(node) < start]
    passed = [node for node in left if isinstance(node, cst.Call) and _may_change(ctx, node)]
    moved = [
        node
        for node in syntax.walk(expression)
        if isinstance(node, cst.Call) and _may_change(ctx, node)
    ]
    if moved and passed:
        return False  # two that change something
    if passed:
        return _unchanged(ctx, passed, list(syntax.walk(expression)))
    # what stands to the left of it is computed after it now
    return not moved or _unchanged(ctx, moved, left)


_PURE = frozenset(
    "abs all any bool complex dict divmod enumerate filter float frozenset getattr hasattr id int isinstance issubclass "
    "len list map max min pow range repr reversed round set slice sorted str sum super tuple type zip".split()
)
"""Functions of Python that change nothing."""
_CHANGING = frozenset({"list", "dict", "set", "Module"})
"""Objects of which most methods change something."""
_ASKING = frozenset(
    "get keys values items index count copy children named_children modules named_modules parameters named_parameters "
    "buffers named_buffers state_dict extra_repr".split()
)
"""Methods of these that do not."""


def _may_change(ctx: Context, call: cst.Call) -> bool:
    """Whether a call may change an object, or the parameters of a module, that somebody else reads."""
    kind = ctx.kind(call.func)
    if isinstance(kind, k.Function | k.Class) and kind.name:
        owner, _, name = kind.name.rpartition(".")
        if owner == "builtins":
            return name not in _PURE
        if owner in _CHANGING:
            return name not in _ASKING
        return kind.name in ctx.facts.names or kind.name in ctx.facts.classes
    return not (isinstance(kind, k.Module) and kind.cls.startswith("torch.")) or bool(
        updated_by(ctx, call)
    )


def _unchanged(ctx: Context, calls: Sequence[cst.Call], nodes: Sequence[cst.CSTNode]) -> bool:
    """Whether calls change nothing that expressions read."""
    read = set(_read(ctx, nodes))
    if not read:
        return True
    written = _assigned(ctx) | written_names(ctx)
    written |= {name for one in calls for name in updated_by(ctx, one)}
    return "" not in read and read.isdisjoint(written)


def _read(ctx: Context, nodes: Sequence[cst.CSTNode]) -> Iterator[str]:
    """The names of the attributes of objects that expressions read; "" for lists and tables."""
    called = {id(node.func) for node in nodes if isinstance(node, cst.Call)}
    for node in nodes:
        if not isinstance(node, (cst.Name, cst.Attribute, cst.Subscript)):
            continue
        if isinstance(ctx.kind(node), k.Sequence | k.Mapping):
            yield ""
        if isinstance(node, cst.Name):
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
