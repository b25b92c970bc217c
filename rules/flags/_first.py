"""What a module does once, by a flag of its own: ``if self.initialized.item() == 0: self.initialize(x)``.

All that such a branch changes is the module's state, which JAX can do under a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

_COMPARED = (cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan)


@dataclass(frozen=True)
class Start:
    """The parts of such a test: ``self.training and self.initialized.item() == 0``.

    Attributes:
      settled: what stands before the question, of Python's; None where nothing does.
      state: the buffer.
      operator: how it is compared, with ``number``.
    """

    settled: cst.BaseExpression | None
    state: cst.Attribute
    operator: str
    number: str


def start(node: cst.If, parents: Sequence[cst.CSTNode], kind: Callable[[Any], Any]) -> Start | None:
    """The test of a branch that changes nothing but the state of its module; None for any other branch.

    Args:
      parents: the ancestors of the node, outermost first.
      kind: the kind of an expression.
    """
    function = next((p for p in reversed(parents) if isinstance(p, cst.FunctionDef)), None)
    if function is None or node.orelse is not None or not function.params.params:
        return None
    receiver = function.params.params[0].name.value
    if receiver != "self" or function.name.value == "__init__":
        return None
    found = _test(node.test, kind)
    if found is None or not _only_state(node.body, kind):
        return None
    bound = set(_bound(node.body))
    inside = {id(n) for n in _walk(node.body)}
    outside = {n.value for n in _walk(function) if isinstance(n, cst.Name) and id(n) not in inside}
    return found if bound.isdisjoint(outside) else None


def starts(node: cst.CSTNode, parents: Sequence[cst.CSTNode], kind: Callable[[Any], Any]) -> bool:
    """Whether a node is part of the test of such a branch."""
    inner = node
    for place in range(len(parents) - 1, -1, -1):
        parent = parents[place]
        if isinstance(parent, cst.If):
            return parent.test is inner and start(parent, parents[:place], kind) is not None
        if not isinstance(parent, cst.BaseExpression | cst.Arg | cst.ComparisonTarget):
            return False
        inner = parent
    return False


def _test(node: cst.BaseExpression, kind: Callable[[Any], Any]) -> Start | None:
    settled = None
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.And):
        settled, node = node.left, node.right
        if any(_is_tensor(kind(part)) for part in _walk(settled)):
            return None
    operator, number = "!=", "0"
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        operator, node = "==", node.expression
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        told = node.comparisons[0]
        if not isinstance(told.operator, _COMPARED):
            return None
        value = {"True": "1", "False": "0"}.get(getattr(told.comparator, "value", ""))
        if isinstance(told.comparator, (cst.Integer, cst.Float)):
            value = told.comparator.value
        if value is None:
            return None
        operator, number, node = told.operator._get_token(), value, node.left
    state = _state(node, kind)
    return Start(settled, state, operator, number) if state is not None else None


def _state(node: cst.BaseExpression, kind: Callable[[Any], Any]) -> cst.Attribute | None:
    """``self.flag`` of ``self.flag.item()``, ``bool(self.flag)``: a buffer of the module itself."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "item":
            return _state(node.func.value, kind) if not node.args else None
        if isinstance(node.func, cst.Name) and node.func.value in ("bool", "int", "float"):
            return _state(node.args[0].value, kind) if len(node.args) == 1 else None
        return None
    own = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    if not own or node.value.value != "self":  # type: ignore[attr-defined]
        return None
    return node if getattr(kind(node), "role", "") == "buffer" else None  # type: ignore[return-value]


def _is_tensor(kind: Any) -> bool:
    return type(kind).__name__ == "Tensor"


def _only_state(body: cst.BaseSuite, kind: Callable[[Any], Any]) -> bool:
    """Whether statements change only what the module keeps, and names of their own."""
    bound = set(_bound(body))
    return all(_keeps_out(one, bound, kind) for one in body.body)


def _keeps_out(node: cst.CSTNode, bound: set[str], kind: Callable[[Any], Any]) -> bool:
    if isinstance(node, (cst.With, cst.For, cst.If)):
        if isinstance(node, cst.If) and _is_tensor(kind(node.test)):
            return False
        suites: list[Any] = [node.body]
        orelse = getattr(node, "orelse", None)
        if orelse is not None:
            suites.append(
                orelse.body if isinstance(orelse, cst.Else) else cst.IndentedBlock([orelse])
            )
        return all(_keeps_out(one, bound, kind) for suite in suites for one in suite.body)
    if isinstance(node, cst.SimpleStatementLine):
        return all(_keeps_out(one, bound, kind) for one in node.body)
    if isinstance(node, cst.Expr):
        call = node.value
        if isinstance(call, cst.SimpleString):
            return True
        if not isinstance(call, cst.Call) or not isinstance(call.func, (cst.Attribute, cst.Name)):
            return False
        return _writes_own(call, bound)
    if isinstance(node, cst.Assign):
        return all(_is_own(one.target, bound, kind) for one in node.targets)
    if isinstance(node, cst.AugAssign):
        return _is_own(node.target, bound, kind)
    return isinstance(node, (cst.Pass, cst.Assert))


def _writes_own(call: cst.Call, bound: set[str]) -> bool:
    """Whether a call as a statement works on the module, or on what the branch made itself."""
    root: Any = call.func
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if not isinstance(root, cst.Name):
        return False
    return root.value in ("self", "nn", "torch", "init", "print") or root.value in bound


def _is_own(target: Any, bound: set[str], kind: Callable[[Any], Any]) -> bool:
    """Whether a target is a name of the branch, or a parameter or buffer of the module."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return all(_is_own(element.value, bound, kind) for element in target.elements)
    if isinstance(target, cst.Name):
        return True  # no name outside is the same
    while isinstance(target, cst.Subscript) or _is_data(target):
        target = target.value
    if isinstance(target, cst.Name):
        return target.value in bound
    return bool(getattr(kind(target), "role", ""))


def _is_data(node: Any) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "data"


def _bound(body: cst.CSTNode) -> Iterator[str]:
    """The names that statements bind."""
    for node in _walk(body):
        targets: list[Any] = []
        if isinstance(node, cst.Assign):
            targets = [one.target for one in node.targets]
        elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr)):
            targets = [node.target]
        elif isinstance(node, cst.AsName):
            targets = [node.name]
        while targets:
            target = targets.pop()
            if isinstance(target, cst.Name):
                yield target.value
            elif isinstance(target, (cst.Tuple, cst.List)):
                targets += [element.value for element in target.elements]


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and what is below it; the names of attributes and of keywords are none of the code's."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        if isinstance(one, cst.Attribute):
            pending.append(one.value)
        elif isinstance(one, cst.Arg):
            pending.append(one.value)
        else:
            pending.extend(one.children)
