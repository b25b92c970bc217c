"""Tests of a mask around what does nothing where the mask is empty: ``if mask.any(): x = x.masked_fill(mask, 0)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.registry import FlagContext

_ANY = frozenset({"Tensor.any", "torch.any"})
_FILLS = frozenset({"Tensor.masked_fill", "torch.masked_fill", "Tensor.masked_fill_"})


def is_guard(node: cst.If, ctx: FlagContext) -> bool:
    """Whether an ``if`` may be left out: its body changes only what its own mask selects."""
    mask = _tested(node.test, ctx)
    if mask is None or node.orelse is not None or not ctx.is_tensor(mask):
        return False
    small = [
        s
        for line in node.body.body
        for s in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
    ]
    return bool(small) and all(_fills(one, mask, ctx) for one in small)


def guards(node: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether a node is part of the test of such an ``if``."""
    inner = node
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.If):
            return parent.test is inner and is_guard(parent, ctx)
        if not isinstance(parent, (cst.Call, cst.Attribute, cst.Arg)):
            return False
        inner = parent
    return False


def _tested(test: cst.BaseExpression, ctx: FlagContext) -> cst.BaseExpression | None:
    """The mask of ``mask.any()``, ``torch.any(mask)``, ``mask.any().item()``, ``bool(mask.any())``."""
    if not isinstance(test, cst.Call):
        return None
    name = ctx.callee(test)
    if name == "Tensor.item" and isinstance(test.func, cst.Attribute):
        return _tested(test.func.value, ctx)
    if name == "builtins.bool" and len(test.args) == 1:
        return _tested(test.args[0].value, ctx)
    if name not in _ANY:
        return None
    given = [a.value for a in test.args]
    if name == "Tensor.any" and isinstance(test.func, cst.Attribute):
        given = [test.func.value, *given]
    return given[0] if len(given) == 1 else None


def _fills(small: Any, mask: cst.BaseExpression, ctx: FlagContext) -> bool:
    """``x = x.masked_fill(mask, 0)``, ``x.masked_fill_(mask, 0)`` or ``x[mask] = 0``, with a number."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
        if isinstance(target, cst.Subscript) and len(target.slice) == 1:
            index = target.slice[0].slice
            same = isinstance(index, cst.Index) and _same(index.value, mask)
            return same and _is_filled(target.value, value, mask, ctx)
        return isinstance(target, cst.Name) and _is_fill(value, target, mask, ctx)
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        func = small.value.func
        written = isinstance(func, cst.Attribute) and func.attr.value == "masked_fill_"
        receiver = func.value if isinstance(func, cst.Attribute) else None
        return written and receiver is not None and _is_fill(small.value, receiver, mask, ctx)
    return False


def _is_fill(
    call: cst.BaseExpression, target: cst.BaseExpression, mask: cst.BaseExpression, ctx: FlagContext
) -> bool:
    if not isinstance(call, cst.Call) or ctx.callee(call) not in _FILLS:
        return False
    given = [a.value for a in call.args if a.keyword is None and not a.star]
    if isinstance(call.func, cst.Attribute) and str(ctx.callee(call)).startswith("Tensor."):
        given = [call.func.value, *given]
    if len(given) != 3 or len(call.args) > 3 or not _same(given[0], target):
        return False
    return _same(given[1], mask) and _is_filled(target, given[2], mask, ctx)


def _same(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two expressions are written alike, but for brackets around them."""
    bare = [node.with_changes(lpar=[], rpar=[]) for node in (one, other)]
    return bare[0].deep_equals(bare[1])


def _is_filled(
    target: cst.BaseExpression,
    value: cst.BaseExpression,
    mask: cst.BaseExpression,
    ctx: FlagContext,
) -> bool:
    """Whether a name that the mask does not read gets a number."""
    if not isinstance(target, cst.Name) or ctx.scalar(value) not in ("int", "float", "bool"):
        return False
    waiting: list[cst.CSTNode] = [mask]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Name) and node.value == target.value:
            return False
        waiting.extend(node.children)
    return True
