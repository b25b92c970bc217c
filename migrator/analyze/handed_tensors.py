"""Numbers by their hints or defaults that traced code of the file hands tensors to.

``def scaled(x, by: float = 2.0)`` with ``if by > 1:`` is a branch on a tensor where ``scaled(x, x.mean())`` calls it,
whatever the hint says: what a hint says of a parameter is believed for all that arithmetic does with it, and no further.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by
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


def never_given(facts: Facts, info: FunctionInfo, node: cst.CSTNode) -> bool:
    """``if scale:`` of a parameter that is None where nobody gives it, and that no call of the project does give.

    What its uses suggest, ``scale.expand_as(w)``, is of no account then: the port asks what torch asks, of None.
    """
    if not isinstance(node, cst.Name) or info.shared or not info.call_sites:
        return False
    param = syntax.parameters(info.node).get(node.value)
    if param is None or param.default is None or facts.kind(param.default) != k.NONE:
        return False
    if any(kind != k.NONE for kind in info.handed.get(node.value, {}).values()):
        return False
    calls = [one for one in info.call_sites if isinstance(one, cst.Call)]
    if len(calls) != len(info.call_sites) or any(arg.star for one in calls for arg in one.args):
        return False
    if any(
        node.value in bound(bound_by(one)) for one in facts.tree.within(info.node.body, *BINDING)
    ):
        return False
    return _is_only_called(facts, info, calls)


def _is_only_called(facts: Facts, info: FunctionInfo, calls: list[cst.Call]) -> bool:
    """Whether a function is named in its calls and nowhere else in the file, so that all of them are known."""
    called = {id(one.func) for one in calls}
    named = (
        one
        for one in facts.tree.of_type(cst.Attribute, cst.Name)
        if (one.attr.value if isinstance(one, cst.Attribute) else one.value) == info.short
    )
    for one in named:
        above = facts.tree.parent(one)
        own = isinstance(above, cst.FunctionDef) and above.name is one
        part = isinstance(above, cst.Attribute) and above.attr is one
        if id(one) not in called and not own and not part:
            return False
    texts = facts.tree.of_type(cst.SimpleString)
    return not any(one.value.strip("'\"") == info.short for one in texts)


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
