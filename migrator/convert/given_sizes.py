"""The sizes that a selection is given by the ``view`` around it."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context


def given_sizes(ctx: Context, node: cst.CSTNode) -> list[cst.BaseExpression] | None:
    """The sizes in ``….view(n, n - 1)`` around a selection, where all of them are given."""
    around = ctx.source.index.around(node)
    if len(around) < 2 or not isinstance(attribute := around[-1], cst.Attribute):
        return None
    call = around[-2]
    if attribute.attr.value not in ("view", "reshape") or not isinstance(call, cst.Call):
        return None
    if call.func is not attribute or any(a.star or a.keyword is not None for a in call.args):
        return None
    values = [arg.value for arg in call.args]
    if len(values) == 1 and isinstance(values[0], (cst.Tuple, cst.List)):
        values = [element.value for element in values[0].elements]
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    if function is None or not values:
        return None
    return values if all(_from_shapes(ctx, one, function) for one in values) else None


def _from_shapes(ctx: Context, node: cst.BaseExpression, function: cst.FunctionDef) -> bool:
    """Whether a size is computed of sizes of tensors and of numbers that are written down: it is no -1."""
    if isinstance(node, cst.BinaryOperation):
        exact = isinstance(node.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide))
        sides = (node.left, node.right)
        return exact and all(_from_shapes(ctx, one, function) for one in sides)
    if isinstance(node, cst.Subscript):
        return isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape"
    if isinstance(node, cst.Call):
        return ctx.facts.callee(node) in ("Tensor.size", "builtins.len")
    if isinstance(node, cst.Attribute):
        return node.attr.value == "shape"
    if not isinstance(node, cst.Name):
        return isinstance(node, cst.Integer)
    tree = ctx.facts.tree
    if any(p.name.value == node.value for p in tree.within(function, cst.Param)):
        return False
    values = [
        line.value
        for line in tree.within(function, cst.Assign)
        if any(node.value in syntax.names(t.target) for t in line.targets)
    ]
    written = tree.within(function, cst.AugAssign, cst.For, cst.NamedExpr, cst.AnnAssign)
    if any(node.value in syntax.names(one.target) for one in written):
        return False
    return bool(values) and all(
        node.value not in syntax.names(one) and _from_shapes(ctx, one, function) for one in values
    )
