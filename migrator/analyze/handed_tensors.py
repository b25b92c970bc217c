"""Numbers by their hints or defaults that traced code of the file hands tensors to.

``def scaled(x, by: float = 2.0)`` with ``if by > 1:`` is a branch on a tensor where ``scaled(x, x.mean())`` calls it,
whatever the hint says: what a hint says of a parameter is believed for all that arithmetic does with it, and no further.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator.convert.alias import bound_arguments
from migrator.infer import Facts, FunctionInfo
from migrator.infer import kinds as k

_TOLD_APART = ("isinstance", "is_tensor", "hasattr", "item", "tolist", "size", "numel", "shape")
_VALUE_ASKED = (
    cst.Equal, cst.NotEqual, cst.LessThan, cst.GreaterThan, cst.LessThanEqual, cst.GreaterThanEqual
)  # fmt: skip


def handed_tensor(
    facts: Facts, info: FunctionInfo, node: cst.CSTNode, traced: Callable[[FunctionInfo], bool]
) -> bool:
    """Whether an expression is computed from a parameter of ``info`` alone, and a traced call hands that a tensor."""
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        return any(handed_tensor(facts, info, one, traced) for one in _sides(node))
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return handed_tensor(facts, info, node.expression, traced)
    if not isinstance(node, cst.Name) or node.value not in info.handed:
        return False
    kind = facts.kind(node)
    number = k.scalar_type(kind) in ("int", "float", "number") and not isinstance(kind, k.Const)
    if not number and not isinstance(kind, k.Unknown):
        return False
    return any(
        isinstance(given, k.Tensor)
        and isinstance(call, cst.Call)
        and (caller := info.call_sites.get(call)) is not None
        and traced(caller)
        and _is_sure(facts, caller, call, info, node.value)
        for call, given in info.handed[node.value].items()
    ) and _keeps(facts, info, node.value)


def _sides(node: cst.BinaryOperation | cst.Comparison) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BinaryOperation):
        return [node.left, node.right]
    sides = [node.left, *(one.comparator for one in node.comparisons)]
    words = any(isinstance(one, (cst.SimpleString, cst.ConcatenatedString)) for one in sides)
    asked = all(isinstance(one.operator, _VALUE_ASKED) for one in node.comparisons)
    return sides if asked and not words else []


def _is_sure(
    facts: Facts, caller: FunctionInfo, call: cst.Call, info: FunctionInfo, param: str
) -> bool:
    """Whether a call surely hands a tensor over: a parameter without a hint is only guessed to be one."""
    given = next((item.value for name, item in bound_arguments(call, info) if name == param), None)
    if given is None:
        return False
    if not isinstance(given, cst.Name):
        return isinstance(facts.kind(given), k.Tensor)
    hints = {p.name.value: p.annotation for p in facts.tree.within(caller.node.params, cst.Param)}
    return given.value not in hints or hints[given.value] is not None


def _keeps(facts: Facts, info: FunctionInfo, param: str) -> bool:
    """Whether a parameter stays what the caller hands over: it is neither bound anew nor told apart."""
    for name in facts.tree.within(info.node.body, cst.Name):
        if name.value != param:
            continue
        *_, outer, parent = facts.tree.around(name)
        if isinstance(
            parent, (cst.AssignTarget, cst.AugAssign, cst.For, cst.Attribute, cst.NamedExpr)
        ):
            return False
        if isinstance(parent, cst.Arg) and isinstance(outer, cst.Call):
            func = outer.func.attr if isinstance(outer.func, cst.Attribute) else outer.func
            if isinstance(func, cst.Name) and func.value in _TOLD_APART:
                return False
    return True
