"""``self._modules`` of an own container: torch's table of the children, which Flax has not, but can make.

Flax sorts attributes by name once a module went through jit, so that the constructor notes the children's order; so does
a method that adds some.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.children import REGISTERING
from migrator.convert.context import Context, Failure
from migrator.convert.passes.module_walks import notes_order, reads_table
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_READING = frozenset("values items keys get".split())
_ASKING = frozenset("len list iter enumerate tuple sorted".split())


@converts(cst.Attribute, named=("_modules",))
def table(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self._modules.values()`` → ``child_table(self).values()``."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if node.attr.value != "_modules" or not ctx.is_self(node.value) or owner is None:
        return None
    if owner.torch_base != "torch.nn.Module" or owner.attribute("_modules") is not None:
        return None
    if not notes_order(ctx, owner) or not _is_read(ctx, node) or _may_be_none(ctx, owner):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.children"), "child_table")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(node.value)])


def _may_be_none(ctx: Context, owner: ClassInfo) -> bool:
    """Whether a child may be None, which torch's table has and the port's has not."""
    kinds = [kind for one in owner.lineage() for kind in one.attributes.values()]
    if any(isinstance(kind, k.Optional) and isinstance(kind.inner, k.Module) for kind in kinds):
        return True
    calls = ctx.source.index.of_type(cst.Call)
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value in REGISTERING
        and any(ctx.facts.kind(arg.value) == k.NONE for arg in call.args)
        for call in calls
    )


def _is_read(ctx: Context, node: cst.Attribute) -> bool:
    """Whether the table is looked at here, and neither changed nor kept."""
    if not ctx.facts.tree.has(node):
        return False
    around = ctx.facts.tree.around(node)
    above, outer = around[-1], around[-2]
    if isinstance(above, cst.Attribute):
        return above.attr.value in _READING and isinstance(outer, cst.Call) and outer.func is above
    if isinstance(above, cst.Subscript):
        return above.value is node and not isinstance(outer, (cst.AssignTarget, cst.Del))
    if isinstance(above, cst.Arg):
        named = isinstance(outer, cst.Call) and isinstance(outer.func, cst.Name)
        return named and not above.star and outer.func.value in _ASKING
    return isinstance(above, (cst.ComparisonTarget, cst.For, cst.CompFor))


@converts(cst.Expr, named=REGISTERING, values=(cst.Call,))
def added(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.add_module(name, m)`` outside of the constructor: the order is noted anew.

    Raises:
      Failure: it is not the container itself that adds a child.
    """
    ctx, call = rw.ctx, node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    if call.func.attr.value not in REGISTERING or node in ctx.redeclared:
        return None
    info = ctx.class_of(ctx.kind(call.func.value))
    if info is None or not notes_order(ctx, info) or not reads_table(ctx, info):
        return None
    own = ctx.is_self(call.func.value) and ctx.frame is not None
    heir = ctx.owner is not None and any(notes_order(ctx, one) for one in ctx.owner.parents)
    if own and ctx.frame.info.short == "__init__" and not heir:  # type: ignore[union-attr]
        return None
    if not own:
        what = "a child is added to a module that goes by the order of its children"
        raise Failure(node, "API007", what, "hand it to the constructor")
    ctx.redeclared.add(node)
    made = rw.visit(node)
    helper = ctx.helpers.need(module_file("rules.compat.children"), "child_names")
    noted = syntax.statement(f"self._child_order = {helper}(self)")
    return [*(made if isinstance(made, list) else [made]), noted]
