"""``net.apply(fn)``: where its loop may stand, and what it may call its modules."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def is_apply(ctx: Context, call: cst.Call) -> bool:
    """Whether a call is the ``apply`` of a module, with what it is to call."""
    if not isinstance(call.func, cst.Attribute) or len(call.args) != 1:
        return False
    kind = ctx.facts.kind(call.func)
    return isinstance(kind, k.Function) and kind.name == "Module.apply"


def item_name(ctx: Context) -> str:
    """``module``, or another name where the function around reads one that is called so."""
    if ctx.frame is not None and not syntax.names(ctx.frame.info.node).get("module"):
        return "module"
    return ctx.unused("module")


def applied_first(
    rw: Rewriter, node: cst.Call, loop: Callable[[Rewriter, cst.Call, str], cst.BaseStatement]
) -> cst.BaseExpression | None:
    """``self.net = Net().apply(fn)``: the module gets a name, and the loop comes before the statement.

    Only the whole value of an assignment is taken: nothing else of the statement is evaluated before it then."""
    statement = rw.ctx.statements[-1] if rw.ctx.statements else None
    if statement is None or not isinstance(statement.node, cst.SimpleStatementLine):
        return None
    item = statement.node.body[0]
    whole = len(statement.node.body) == 1 and isinstance(item, cst.Assign) and item.value is node
    if not whole or not is_apply(rw.ctx, node):
        return None
    assert isinstance(node.func, cst.Attribute)
    name = rw.ctx.hoist(node, rw.visit(node.func.value), "made")
    if name is not None:
        statement.before.append(loop(rw, node, syntax.code(name)))
    return name


def applied_function(ctx: Context, kind: k.Kind) -> FunctionInfo | None:
    """The function of the project that ``apply`` calls: what it is handed, or the ``__call__`` of an object."""
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(kind, k.Function):
        return ctx.facts.names.get(kind.name)
    info = ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    return info.method("__call__") if info is not None else None


def once(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """What a loop calls: an object that is made for it gets a name before the loop."""
    made = rw.visit(node)
    if syntax.is_cheap(made) or isinstance(node, cst.Lambda):
        return made
    return rw.ctx.hoist(node, made, "init") or made
