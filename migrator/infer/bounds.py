"""What a program insists on having between two numbers, which is a number itself: ``assert 0 <= p <= 1``."""

from __future__ import annotations

import libcst as cst

ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)


def bounded(node: cst.Assert | cst.If) -> list[cst.BaseExpression]:
    """``p`` of ``assert 0 <= p <= 1``, ``assert p >= 0 and p <= 1``, ``if p < 0 or p > 1: raise ValueError``."""
    test = node.test
    if isinstance(node, cst.If):
        if not _raises(node):
            return []
        if isinstance(test, cst.BooleanOperation):
            return _twice(test, cst.Or)
        if not isinstance(test, cst.UnaryOperation) or not isinstance(test.operator, cst.Not):
            return []
        test = test.expression
    if isinstance(test, cst.BooleanOperation):
        return _twice(test, cst.And)
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 2:
        return []
    ordered = all(isinstance(one.operator, ORDERS) for one in test.comparisons)
    middle, last = (one.comparator for one in test.comparisons)
    return [middle] if ordered and _is_number(test.left) and _is_number(last) else []


def _raises(node: cst.If) -> bool:
    lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    return any(
        isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Raise)
        for line in lines
    )


def _twice(test: cst.BooleanOperation, by: type[cst.BaseBooleanOp]) -> list[cst.BaseExpression]:
    """What both sides of an ``and``, or of an ``or``, compare with a number."""
    if not isinstance(test.operator, by):
        return []
    found = [_compared(one) for one in (test.left, test.right)]
    first, second = found
    return [first] if first is not None and second is not None and first.deep_equals(second) else []


def _compared(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``p`` of ``p >= 0`` and of ``0 <= p``."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return None
    only = node.comparisons[0]
    if not isinstance(only.operator, ORDERS):
        return None
    left, right = node.left, only.comparator
    if _is_number(right):
        return left
    return right if _is_number(left) else None


def _is_number(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float))
