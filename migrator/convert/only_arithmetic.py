"""Names of numbers that are only computed with: ``c1 = (0.01 * top) ** 2`` and ``(x + c1) / y``.

A number that the value of a tensor chooses is an array of no axes in JAX. It is weakly typed, as a number of Python is,
so that arithmetic with it gives what arithmetic with the number gives.
"""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


def only_arithmetic(
    ctx: Context, info: FunctionInfo, name: str, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether whatever reads a local name of a function adds, multiplies or compares with it, also under other names."""
    tree, seen = ctx.facts.tree, seen | {name}
    for node in tree.within(info.node, cst.Name):
        if node.value != name:
            continue
        parent = tree.around(node)[-1]
        bound = isinstance(parent, cst.AssignTarget) and parent.target is node
        bound |= isinstance(parent, cst.AugAssign) and _counts(ctx, parent, node)
        word = isinstance(parent, (cst.Attribute, cst.Arg)) and node in (
            getattr(parent, "attr", None),
            getattr(parent, "keyword", None),
        )
        if not bound and not word and not meets_numbers(ctx, info, node, seen):
            return False
    return True


def _counts(ctx: Context, node: cst.AugAssign, name: cst.Name) -> bool:
    """``n += 1``"""
    added = isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
    number = k.scalar_type(ctx.facts.kind(node.value)) in ("int", "float", "number")
    return node.target is name and added and number


def _is_real(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a number is no integer, as far as one of its parts is none: ``(0.01 * n) ** 2``."""
    if isinstance(node, cst.UnaryOperation):
        return _is_real(ctx, node.expression)
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, cst.Power):
            return _is_real(ctx, node.left)
        parts = (node.left, node.right)
        return isinstance(node.operator, cst.Divide) or any(_is_real(ctx, one) for one in parts)
    return k.scalar_type(ctx.facts.kind(node)) == "float"


def meets_numbers(
    ctx: Context, info: FunctionInfo, node: cst.CSTNode, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether arithmetic around a read ends in a tensor, or in a name of which the same holds."""
    for outer in reversed(ctx.facts.tree.around(node)):
        match outer:
            case cst.UnaryOperation(operator=cst.Minus() | cst.Plus()):
                pass
            case cst.BinaryOperation(left=left, right=right, operator=operator):
                other = right if left is node else left
                if isinstance(operator, cst.Power):
                    if left is not node or not isinstance(right, (cst.Integer, cst.Float)):
                        return False
                elif not isinstance(operator, _OPERATORS):
                    return False
                elif isinstance(ctx.kind(other), k.Tensor):
                    return True
                elif k.scalar_type(ctx.facts.kind(other)) not in ("int", "float", "number"):
                    return False
                if isinstance(operator, (cst.Power, cst.Multiply)):
                    if not _is_real(ctx, outer):
                        return False  # Python's integers do not overflow
            case cst.ComparisonTarget():
                pass
            case cst.Comparison(comparisons=[only]):
                other = outer.left if only is node else only.comparator
                plain = not isinstance(only.operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot))
                return plain and isinstance(ctx.kind(other), k.Tensor)
            case cst.AugAssign(operator=operator, target=target):
                added = isinstance(
                    operator, (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)
                )
                return added and target is not node and isinstance(ctx.kind(target), k.Tensor)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(name))]):
                return name in seen or only_arithmetic(ctx, info, name, seen)
            case _:
                return False
        node = outer
    return False
