"""``x ** y`` with an exponent that may be 0: torch's gradient at 0 ** 0 is 0, JAX's is NaN."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.BinaryOperation)
def power(rw: Rewriter, node: cst.BinaryOperation) -> Any:
    """``x ** self.gamma`` of a float that nothing is known of → ``power(x, self.gamma)``."""
    if not isinstance(node.operator, cst.Power):
        return None
    kind = rw.ctx.kind(node.left)
    differentiable = isinstance(kind, k.Tensor) and kind.dtype not in ("int", "bool")
    if not differentiable or not _may_be_zero(rw, node.right):
        return None
    name = rw.ctx.helpers.need(module_file("rules.compat.pointwise"), "power")
    args = [cst.Arg(syntax.unparenthesized(rw.visit(side))) for side in (node.left, node.right)]
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _may_be_zero(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether an exponent may be 0. and not 0, whose gradient JAX has right."""
    while isinstance(node, cst.UnaryOperation):
        node = node.expression
    kind = rw.ctx.kind(node)
    if isinstance(kind, k.Const):
        return isinstance(kind.value, float) and kind.value == 0
    if isinstance(kind, k.Tensor):
        return kind.dtype not in ("int", "bool")
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
        return _may_be_zero(rw, node.left)  # 1 / n
    return k.scalar_type(kind) not in ("int", "bool")
