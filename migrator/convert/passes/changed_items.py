"""Items of dicts and lists that are changed where they are read: ``hm = out["hm"].sigmoid_()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from migrator import syntax, views
from migrator.convert.alias import check_mutation, reads_in, root_name
from migrator.convert.parts import takes_items
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k


def item_of_own(rw: Rewriter, target: cst.BaseExpression) -> cst.BaseExpression | None:
    """What is written for ``out["hm"].sigmoid_()``, an item of a dict or list that a name stands for.

    The new tensor takes the old one's place there. Who else holds the old one is asked before.
    """
    ctx = rw.ctx
    if not isinstance(target, cst.Subscript) or not isinstance(ctx.kind(target), k.Tensor):
        return None
    if not takes_items(ctx.kind(target.value)) or root_name(target) is None:
        return None
    if any(isinstance(one.slice, cst.Slice) for one in target.slice) or _makes(target):
        return None
    return rw.visit(target)


def _makes(target: cst.CSTNode) -> bool:
    """Whether reading an item twice would compute something twice."""
    made = (cst.Call, cst.NamedExpr, cst.Await)
    return any(isinstance(one, made) for one in syntax.walk(target))


def changed_item(
    rw: Rewriter, node: cst.Call, target: cst.BaseExpression, value: Callable[[], Any]
) -> Any:
    """The item, once a statement before has given it its new value; that value alone where it is assigned to the item.

    None where something else in the statement may read the item, or run before.
    """
    ctx = rw.ctx
    if not isinstance(target, cst.Subscript) or not ctx.statements:
        return None
    statement, root = ctx.statements[-1], root_name(target)
    if not takes_items(ctx.kind(target.value)) or root is None or _makes(target):
        return None
    if views.is_assigned_to(statement.node, target):
        check_mutation(ctx, node, target, reshapes=True)
        return value()
    if not statement.may_hoist or not ctx.may_hoist(node):
        return None
    if reads_in(statement.node, root.value) > syntax.names(node).get(root.value, 0):
        return None
    if syntax.names(node).get(root.value, 0) > 1:
        return None
    check_mutation(ctx, node, target)
    lines = targets.assign(rw, target, value())
    statement.before.extend(cst.SimpleStatementLine([one]) for one in lines)
    return rw.visit(target)
