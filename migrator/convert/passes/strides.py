"""``x.is_contiguous()``: JAX has no strides, so that a program may ask only where both answers lead to the same numbers."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.opening import opened
from migrator.convert.rewriter import Rewriter, converts

_ASKING = "Tensor.is_contiguous"


@converts(cst.If)
def branch(rw: Rewriter, node: cst.If) -> Any:
    """``if not x.is_contiguous(): x = x.contiguous()`` goes; of two branches alike one is left."""
    if not _asks(rw.ctx, node.test) or isinstance(node.orelse, cst.If):
        return None
    other = node.orelse.body if node.orelse is not None else None
    if _changes_nothing(node.body):
        return [] if other is None or _changes_nothing(other) else opened(rw, node, other)
    alike = other is not None and _normal(node.body) == _normal(other)
    return opened(rw, node) if alike else None


@converts(cst.IfExp)
def choice(rw: Rewriter, node: cst.IfExp) -> Any:
    """``x if x.is_contiguous() else x.contiguous()`` → ``x``."""
    if _asks(rw.ctx, node.test) and _normal(node.body) == _normal(node.orelse):
        shorter = min((node.body, node.orelse), key=lambda arm: len(syntax.code(arm)))
        return rw.visit(shorter)
    return None


@converts(cst.Call, called=(_ASKING,))
def asked(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure where something else depends on the answer; an assertion holds for every array."""
    if rw.ctx.facts.callee(node) != _ASKING:
        return
    if any(isinstance(parent, cst.Assert) for parent in rw.ctx.facts.tree.around(node)):
        return
    raise Failure(
        node,
        "API002",
        "JAX arrays have no strides: is_contiguous() is asked where the answer may matter",
        "write what holds for either answer",
    )


def _asks(ctx: Context, test: cst.BaseExpression) -> bool:
    """Whether a test is about the order of a tensor's memory, with or without ``not``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        test = test.expression
    return isinstance(test, cst.Call) and ctx.facts.callee(test) == _ASKING


def _normal(node: cst.CSTNode) -> str:
    """The source of what computes the same numbers, whatever the strides are."""
    text = re.sub(r"\.contiguous\([^()]*\)", "", syntax.code(node))
    return " ".join(text.replace(".view(", ".reshape(").split())


def _changes_nothing(body: cst.BaseSuite) -> bool:
    """``x = x.contiguous()``, or an error about the strides."""
    small = [
        s
        for line in body.body
        for s in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])
    ]
    if small and isinstance(small[-1], cst.Raise):
        return True
    return all(
        isinstance(s, cst.Pass)
        or (
            isinstance(s, cst.Assign)
            and len(s.targets) == 1
            and _normal(s.value) == syntax.code(s.targets[0].target)
        )
        for s in small
    )
