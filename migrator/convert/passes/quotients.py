"""``x / (y + 1e-20)``: where y is 0, torch's gradient is a number, JAX's is 0 · ∞."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_SMALL = 2.0**-63
"""The square of a number from here on has an inverse in float32."""
_BOUNDS = frozenset("clamp clamp_min clip maximum max".split())
_MAKING = frozenset({"torch.tensor", "torch.as_tensor", "torch.scalar_tensor"})


def _has_small(ctx: Context) -> bool:
    return any(_is_small(one) for one in ctx.source.index.of_type(cst.Float))


def _is_small(node: cst.Float) -> bool:
    return 0 < abs(float(node.evaluated_value)) < _SMALL


@converts(cst.BinaryOperation, when=_has_small)
def divided(rw: Rewriter, node: cst.BinaryOperation) -> Any:
    """``x / (y + 1e-20)`` → ``quotient(x, y + 1e-20)``."""
    if not isinstance(node.operator, cst.Divide) or not _may_be_small(rw.ctx, node.right):
        return None
    name = rw.ctx.helpers.need(module_file("rules.compat.pointwise"), "quotient")
    args = [cst.Arg(syntax.unparenthesized(rw.visit(side))) for side in (node.left, node.right)]
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _may_be_small(
    ctx: Context, node: cst.BaseExpression, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether a tensor is kept from 0 by a number whose square has no inverse, or a name stands for such a one."""
    kind = ctx.kind(node)
    if isinstance(kind, k.Tensor) and (kind.role or kind.dtype in ("int", "bool")):
        return False
    if not isinstance(kind, (k.Tensor, k.Unknown)):
        return False
    if isinstance(node, cst.Name):
        given = [] if node.value in seen else _given(ctx, node.value)
        return any(_may_be_small(ctx, one, seen | {node.value}) for one in given)
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, (cst.Add, cst.Subtract)):
            return _is_small_number(ctx, node.left) or _is_small_number(ctx, node.right)
        return False
    if isinstance(node, cst.Call):
        name = (ctx.facts.callee(node) or "").rpartition(".")[2]
        return name in _BOUNDS and any(_is_small_number(ctx, arg.value) for arg in node.args)
    return False


def _given(ctx: Context, name: str) -> list[cst.BaseExpression]:
    """What the function around gives a name."""
    frame = ctx.frame
    if frame is None or not ctx.facts.tree.has(frame.info.node):
        return []
    return [
        node.value
        for node in ctx.facts.tree.within(frame.info.node, cst.Assign)
        if any(isinstance(t.target, cst.Name) and t.target.value == name for t in node.targets)
    ]


def _is_small_number(ctx: Context, node: cst.BaseExpression) -> bool:
    """``1e-20``, ``EPS``, ``self.eps`` that is given such a number, ``torch.tensor(1e-20)``."""
    if isinstance(node, cst.Call) and len(node.args) and ctx.facts.callee(node) in _MAKING:
        return _is_small_number(ctx, node.args[0].value)
    kind = ctx.kind(node)
    value = kind.value if isinstance(kind, k.Const) else None
    if isinstance(value, float):
        return 0 < abs(value) < _SMALL
    if not isinstance(node, cst.Attribute) or not ctx.is_self(node.value) or value is not None:
        return False
    tree = ctx.source.index
    values = [
        one.value
        for one in tree.of_type(cst.Assign)
        for target in one.targets
        if isinstance(target.target, cst.Attribute) and target.target.attr.value == node.attr.value
    ]
    words = {one.value for one in values if isinstance(one, cst.Name)}
    values += [p.default for p in tree.of_type(cst.Param) if p.default and p.name.value in words]
    return any(isinstance(one, cst.Float) and _is_small(one) for one in values)
