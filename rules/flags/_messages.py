"""Checks of tensors' values that do nothing but complain, and messages that go by such a value.

While JAX traces nothing is known to complain of. What is said changes no result, so that it is left out and told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from rules.below import walk
from rules.registry import FlagContext

LEVELS = frozenset("debug info warning warn error critical exception log".split())
LOGGERS = frozenset("logging logger log _logger _log LOG LOGGER warnings".split())
"""What a logger is called everywhere."""
_COMPLAINTS = (cst.Raise, cst.Assert, cst.Pass)
_EFFECTS = (cst.NamedExpr, cst.Await, cst.Yield, cst.Lambda, cst.ListComp, cst.GeneratorExp)
_TEXTS = frozenset("format join".split())


def is_check(node: cst.If, ctx: FlagContext) -> bool:
    """Whether an ``if`` without ``else`` does nothing but say something and raise."""
    return node.orelse is None and _complains(node.body, ctx)


def _complains(body: cst.BaseSuite, ctx: FlagContext) -> bool:
    lines = [
        one
        for line in body.body
        for one in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
    ]
    says = [one for one in lines if not isinstance(one, cst.Pass)]
    return bool(says) and all(
        is_check(one, ctx)
        if isinstance(one, cst.If)
        else isinstance(one, _COMPLAINTS) or is_message(one, ctx)
        for one in lines
    )


def is_message(node: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether a statement is ``print(…)``, ``logger.warning(…)`` or ``warnings.warn(…)``, and changes nothing."""
    call = node.value if isinstance(node, cst.Expr) else None
    if not isinstance(call, cst.Call) or not _says(call, ctx):
        return False
    return not any(_has_effect(one, ctx) for arg in call.args for one in walk(arg))


def _says(call: cst.Call, ctx: FlagContext) -> bool:
    func = call.func
    if ctx.callee(call) == "builtins.print":
        return True
    if not isinstance(func, cst.Attribute) or func.attr.value not in LEVELS:
        return False
    told = func.value.attr if isinstance(func.value, cst.Attribute) else func.value
    return isinstance(told, cst.Name) and told.value in LOGGERS


def _has_effect(node: cst.CSTNode, ctx: FlagContext) -> bool:
    if not isinstance(node, cst.Call):
        return isinstance(node, _EFFECTS)
    name = ctx.callee(node) or ""
    text = isinstance(node.func, cst.Attribute) and node.func.attr.value in _TEXTS
    return name.endswith("_") or not (text or name.startswith(("torch.", "Tensor.", "builtins.")))


def depends(
    parents: Sequence[cst.CSTNode], node: cst.CSTNode, asks: Callable[[cst.BaseExpression], bool]
) -> bool:
    """Whether a statement runs only where the value of a tensor, which ``asks`` tells, says so."""
    inner = node
    for parent in reversed(parents):
        if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            return False
        if isinstance(parent, cst.If) and inner is not parent.test and asks(parent.test):
            return True
        inner = parent
    return False
