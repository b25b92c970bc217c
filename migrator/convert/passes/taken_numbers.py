"""``self.last = self.now`` of two buffers in a method: one tensor under two names, until one of them gets another.

In Flax each is a Variable, to which whoever gives it a new value writes. Were both names those of one Variable, a new
value of the one would be a new value of the other.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.updates import written_names
from migrator.infer import kinds as k


def takes_numbers(ctx: Context, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    """Whether a buffer takes the numbers of another, not its Variable.

    Raises:
      Failure: they are written in place, which torch does to both, and given new values, which it does to one.
    """
    info = ctx.frame.info if ctx.frame is not None else None
    if info is None or ctx.plan.builds_time(info) or not isinstance(value, cst.Attribute):
        return False
    if not (_is_buffer(ctx, target) and _is_buffer(ctx, value)):
        return False
    names = {target.attr.value, value.attr.value}
    if names.isdisjoint(written_names(ctx)):
        return True
    if not _given_again(ctx, target, names):
        return False
    raise Failure(
        target,
        "MUT001",
        f"`{syntax.code(target)}` is `{syntax.code(value)}` until one gets a new value, and is written in place",
        "copy (`.clone()`)",
    )


def _is_buffer(ctx: Context, node: cst.Attribute) -> bool:
    owner = ctx.class_of(ctx.kind(node.value))
    known = owner.attribute(node.attr.value) if owner is not None else None
    inner = known.inner if isinstance(known, k.Optional) else known
    return isinstance(inner, k.Tensor) and inner.role == "buffer"


def _given_again(ctx: Context, target: cst.Attribute, names: set[str]) -> bool:
    """Whether a method gives an attribute of one of the names another value."""
    tree = ctx.facts.tree
    for one in ctx.source.index.of_type(cst.AssignTarget):
        for node in syntax.walk(one.target):
            if (
                not isinstance(node, cst.Attribute)
                or node.attr.value not in names
                or node is target
            ):
                continue
            if isinstance(tree.parent(node), cst.Attribute):
                continue
            outer = [o for o in tree.around(node) if isinstance(o, cst.FunctionDef)]
            if outer and outer[-1].name.value != "__init__":
                return True
    return False
