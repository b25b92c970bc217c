"""Parameters handed to something of which nothing is known, for what it does to them: ``for p in ps: init(p)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.procedures import is_walked
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Expr, values=(cst.Call,))
def handed(rw: Rewriter, node: cst.Expr) -> Any:
    """Raise a Failure for a call that is a statement of its own: it would get the value of a Variable, and fill that."""
    ctx, call = rw.ctx, node.value
    if not isinstance(call, cst.Call) or ctx.frame is None:
        return None
    given = [item.value for item in call.args if is_walked(ctx, item.value)]
    if not given or not (ctx.in_init or ctx.plan.builds_time(ctx.frame.info)):
        return None
    if not isinstance(ctx.kind(call.func), (k.Unknown, k.Other)):
        return None
    if isinstance(call.func, cst.Attribute) and not ctx.is_self(call.func.value):
        return None  # logger.info(name, p)
    what = f"what `{syntax.code(call.func)}` writes to the parameter `{syntax.code(given[0])}` is not known"
    raise Failure(node, "MUT003", what, "call a function of torch.nn.init here, or one of the file")
