"""Chains of calls in place within an expression, whose later calls may read what the first have written."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.alias import innermost, root_name
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases, shared
from migrator.convert.parts import is_new


def check_chain(ctx: Context, node: cst.Call, target: cst.BaseExpression) -> None:
    """Raise a Failure where an argument of a call reads what the calls before it in the chain wrote to.

    The port computes it of the value from before: ``x + y.mul_(2).add_(y)``.
    """
    if not node.args or not _reads(ctx, node, target):
        return
    what = f"`{syntax.code(target)}` is changed in the middle of an expression that reads it"
    raise Failure(node, "MUT002", what, "give each change a statement of its own")


def _reads(ctx: Context, node: cst.Call, target: cst.BaseExpression) -> bool:
    read = {name for one in node.args for name in syntax.names(one)}
    state = memory = None
    if ctx.frame is not None and ctx.statements:
        facts = aliases(ctx, innermost(ctx))
        state = facts.before.get(ctx.statements[-1].node)
        memory = facts.memory(target, state) if state is not None else None
    if memory and state is not None and isinstance(target, cst.Call) and is_new(memory):
        if not any(shared(memory, theirs) for theirs in state.values()):
            return False  # of nobody else: ``x.roll(1, 0).mul_(2).add_(x)``
    root = root_name(target, ctx)
    if root is not None and root.value in read:
        return True
    path = syntax.code(target).removesuffix(".data")
    every = [part for one in node.args for part in syntax.walk(one)]
    if any(isinstance(part, cst.Attribute) and syntax.code(part) == path for part in every):
        return True
    owner = path.rpartition(".")[0]
    if owner and any(isinstance(part, cst.Call) and _is_handed(part, owner) for part in every):
        return True
    if state is None or memory is None:
        return False
    return any(shared(memory, state[name]) for name in read if name in state)


def _is_handed(call: cst.Call, owner: str) -> bool:
    """``self.mean()`` and ``mean(self)``, which may read any attribute of it."""
    parts = [one.value for one in call.args]
    parts += [call.func.value] if isinstance(call.func, cst.Attribute) else []
    return any(syntax.code(one) == owner for one in parts)
