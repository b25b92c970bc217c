"""What a module does by a flag of its own: ``if self.initialized.item() == 0: self.initialize(x)``, with or without ``else``.

All that such a branch changes is the module's state, which JAX can do under a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrator.infer.kinds import scalar_type
from rules.below import children

Kinds = Callable[[Any], Any]
"""Gives the kind of an expression."""

COMPARED = (
    cst.Equal,
    cst.NotEqual,
    cst.LessThan,
    cst.LessThanEqual,
    cst.GreaterThan,
    cst.GreaterThanEqual,
)
"""What compares numbers."""
_ASKING = frozenset("isinf isnan isfinite any all sum max min abs count_nonzero".split())
"""Functions of torch, and methods, of the flag alone: what they give is asked."""
_READING = frozenset(["bool", "int", "float"])
_PURE = (cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.BinaryOperation, cst.UnaryOperation)


@dataclass(frozen=True)
class Asked:
    """A question about the state: ``self.steps % self.every == 0``.

    Attributes:
      state: the buffer, or what is asked of it.
      modulo: what it is divided by, where the rest is asked.
      operator: how it is compared, with ``number``.
    """

    state: cst.BaseExpression
    modulo: cst.BaseExpression | None
    operator: str
    number: str | cst.BaseExpression


@dataclass(frozen=True)
class Start:
    """The parts of such a branch: ``if self.training and self.initialized.item() == 0: … else: …``.

    Attributes:
      settled: what stands beside the questions, of Python's, all of which must hold.
      ends: a bare ``return`` where the questions hold: what comes after it is ``body``, and ``settled`` one of which holds.
      asked: the questions, all of which must hold.
      body, otherwise: the statements of the two ways.
      given: parameters of the function that the body gives other values; nothing reads them later.
    """

    settled: tuple[cst.BaseExpression, ...]
    asked: tuple[Asked, ...]
    body: tuple[Any, ...]
    otherwise: tuple[Any, ...]
    ends: bool = False
    given: tuple[str, ...] = ()


def start(node: cst.If, parents: Sequence[cst.CSTNode], kind: Kinds) -> Start | None:
    """The parts of a branch that changes nothing but the state of its module; None for any other branch.

    Args:
      parents: the ancestors of the node, outermost first.
      kind: the kind of an expression.
    """
    function = next((p for p in reversed(parents) if isinstance(p, cst.FunctionDef)), None)
    if function is None or not function.params.params:
        return None
    receiver = function.params.params[0].name.value
    if receiver != "self" or function.name.value == "__init__":
        return None
    if _returns(node.body) and node.orelse is None:
        return _ending(node, parents, function, kind)
    if isinstance(parents[-1], cst.If) and parents[-1].orelse is node:
        return None  # an elif
    found = _test(node.test, cst.And, kind)
    if found is None or not isinstance(node.orelse, (cst.Else, type(None))):
        return None
    suites = [node.body] if node.orelse is None else [node.body, node.orelse.body]
    if not all(_only_state(suite.body, kind) for suite in suites):
        return None
    bound = {name for suite in suites for name in _bound(suite)}
    if bound & _names_outside(function, suites):
        return None
    settled, asked = found
    ways = [tuple(suite.body) for suite in suites]
    return Start(settled, asked, ways[0], ways[1] if len(ways) > 1 else ())


def _ending(
    node: cst.If, parents: Sequence[cst.CSTNode], function: cst.FunctionDef, kind: Kinds
) -> Start | None:
    """``if self.initted: return``, and all that comes after it changes the state of the module."""
    found = _test(node.test, cst.Or, kind)
    if found is None or parents[-1] is not function.body or parents[-2] is not function:
        return None
    lines: list[Any] = list(function.body.body)
    place = lines.index(node)
    rest = lines[place + 1 :]
    returned = [one.value for one in _walk(function) if isinstance(one, cst.Return)]
    returned = [one for one in returned if getattr(one, "value", "") != "None"]
    if not rest or any(one is not None for one in returned) or not _only_state(rest, kind):
        return None
    suite = cst.IndentedBlock(rest)
    own = {p.name.value for p in function.params.params}
    bound = list(dict.fromkeys(_bound(suite)))
    before = {n.value for line in lines[:place] for n in _walk(line) if isinstance(n, cst.Name)}
    if any(name in before and name not in own for name in bound):
        return None
    settled, asked = found
    return Start(settled, asked, tuple(rest), (), True, tuple(n for n in bound if n in own))


def _returns(body: cst.BaseSuite) -> bool:
    """A bare ``return``, which stands alone."""
    line = body.body[0] if len(body.body) == 1 else None
    if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
        line = line.body[0]
    if not isinstance(line, cst.Return):
        return False
    return line.value is None or (isinstance(line.value, cst.Name) and line.value.value == "None")


def _names_outside(function: cst.FunctionDef, suites: Sequence[cst.BaseSuite]) -> set[str]:
    inside = {id(n) for suite in suites for n in _walk(suite)}
    return {n.value for n in _walk(function) if isinstance(n, cst.Name) and id(n) not in inside}


def starts(node: cst.CSTNode, parents: Sequence[cst.CSTNode], kind: Kinds) -> bool:
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


def stands_in(node: cst.CSTNode, parents: Sequence[cst.CSTNode], kind: Kinds) -> bool:
    """Whether a statement is run by such a branch."""
    path = [*parents, node]
    for place, parent in enumerate(parents):
        if isinstance(parent, cst.If) and path[place + 1] is not parent.test:
            if start(parent, parents[:place], kind) is not None:
                return True
        if isinstance(parent, cst.IndentedBlock):
            before = parent.body[: list(parent.body).index(path[place + 1])]  # type: ignore[arg-type]
            ends = (one for one in before if isinstance(one, cst.If) and _returns(one.body))
            if any(start(one, parents[: place + 1], kind) is not None for one in ends):
                return True
    return False


def _test(
    node: cst.BaseExpression, by: type[cst.BaseBooleanOp], kind: Kinds
) -> tuple[tuple[cst.BaseExpression, ...], tuple[Asked, ...]] | None:
    """What is settled and what is asked, in a test that joins them by ``and``, or by ``or``."""
    parts = list(_joined(node, by))
    asked = [_asked(part, kind) for part in parts]
    settled = [part for part, one in zip(parts, asked, strict=True) if one is None]
    questions = tuple(one for one in asked if one is not None)
    if not questions or not all(_is_settled(part, kind) for part in settled):
        return None
    if by is cst.Or and len(questions) > 1:
        return None  # one question alone is turned round
    first = next(place for place, one in enumerate(asked) if one is not None)
    if any(
        _does_something(part)
        for part, one in zip(parts[first:], asked[first:], strict=True)
        if one is None
    ):
        return None  # Python asks it only where the question before it lets it
    return tuple(settled), questions


_HARMLESS = frozenset("isinstance issubclass len hasattr getattr callable".split())


def _does_something(node: cst.CSTNode) -> bool:
    """Whether a part of a test calls what may do more than answer: ``random.random() < p``, ``self.is_due()``."""
    calls = (one.func for one in _walk(node) if isinstance(one, cst.Call))
    return any(not isinstance(func, cst.Name) or func.value not in _HARMLESS for func in calls)


def _is_settled(node: cst.BaseExpression, kind: Kinds) -> bool:
    """Whether Python knows an answer: ``x.shape[0] > 9`` says nothing of what is in a tensor."""
    if isinstance(node, cst.BooleanOperation):
        return _is_settled(node.left, kind) and _is_settled(node.right, kind)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return _is_settled(node.expression, kind)
    known = scalar_type(kind(node)) is not None
    return known or not any(_is_tensor(kind(one)) for one in _walk(node))


def _joined(node: cst.BaseExpression, by: type[cst.BaseBooleanOp]) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, by):
        yield from _joined(node.left, by)
        yield from _joined(node.right, by)
    else:
        yield node


def _asked(node: cst.BaseExpression, kind: Kinds) -> Asked | None:
    operator: str = "!="
    number: str | cst.BaseExpression | None = "0"
    read: cst.BaseExpression = node
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = _asked(node.expression, kind)
        plain = inner is not None and (inner.operator, inner.number) == ("!=", "0")
        return Asked(inner.state, inner.modulo, "==", "0") if inner is not None and plain else None
    if isinstance(node, cst.Comparison):
        if len(node.comparisons) != 1 or not isinstance(node.comparisons[0].operator, COMPARED):
            return None
        told, read = node.comparisons[0], node.left
        operator, number = told.operator._get_token(), _number(told.comparator, kind)  # type: ignore[attr-defined]
    modulo = None
    if isinstance(read, cst.BinaryOperation) and isinstance(read.operator, cst.Modulo):
        if scalar_type(kind(read.right)) != "int" or not _is_pure(read.right):
            return None
        modulo, read = read.right, read.left
    state, taken_out = _state(read, kind)
    if state is None or number is None or (taken_out and not _is_exact(number, kind)):
        return None
    if modulo is not None and getattr(kind(state), "dtype", None) not in ("int", "int64", "int32"):
        return None
    return Asked(state, modulo, operator, number)


def _number(node: cst.BaseExpression, kind: Kinds) -> str | cst.BaseExpression | None:
    """The text of a constant, a truth value as a number; an expression that gives a number of Python's; or None."""
    word = {"True": "1", "False": "0"}.get(getattr(node, "value", ""))
    if word is not None:
        return word
    if isinstance(node, (cst.Integer, cst.Float)):
        return node.value
    known = scalar_type(kind(node)) in ("int", "float")
    return node if known and (_is_pure(node) or _is_limit(node)) else None


def _is_limit(node: cst.BaseExpression) -> bool:
    """``float("-inf")``."""
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "float"
        and len(node.args) == 1
        and isinstance(node.args[0].value, cst.SimpleString)
    )


def _is_exact(number: str | cst.BaseExpression, kind: Kinds) -> bool:
    """Whether a number is the same in float32, so that it makes no difference in which precision it is compared."""
    if isinstance(number, str):
        value = float(number.replace("_", ""))
        return value.is_integer() and abs(value) < 2**24
    return scalar_type(kind(number)) == "int" or _is_limit(number)


def _is_pure(node: cst.CSTNode) -> bool:
    """Whether an expression of Python's numbers does nothing but compute."""
    return all(isinstance(one, _PURE) for one in _walk(node) if isinstance(one, cst.BaseExpression))


def _state(node: cst.BaseExpression, kind: Kinds) -> tuple[cst.BaseExpression | None, bool]:
    """``self.flag`` of ``self.flag.item()``, ``bool(self.flag)``; what is asked of a buffer of the module itself.

    The second part tells whether it is taken out as a number."""
    if isinstance(node, cst.Call):
        func, args = node.func, [one.value for one in node.args]
        if isinstance(func, cst.Attribute) and func.attr.value == "item" and not args:
            return _state(func.value, kind)[0], True
        if isinstance(func, cst.Name) and func.value in _READING and len(args) == 1:
            return _state(args[0], kind)[0], True
        if not isinstance(func, cst.Attribute) or func.attr.value not in _ASKING:
            return None, False
        of_torch = isinstance(func.value, cst.Name) and func.value.value == "torch"
        if len(args) != of_torch:
            return None, False
        state, taken_out = _state(args[0] if of_torch else func.value, kind)
        return (node if state is not None and not taken_out else None), False
    own = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    if not own or node.value.value != "self":  # type: ignore[attr-defined]
        return None, False
    return (node if getattr(kind(node), "role", "") == "buffer" else None), False


def _is_tensor(kind: Any) -> bool:
    return type(kind).__name__ == "Tensor"


def _only_state(lines: Sequence[Any], kind: Kinds) -> bool:
    """Whether statements change only what the module keeps, and names of their own."""
    bound = {name for one in lines for name in _bound(one)}
    return all(_keeps_out(one, bound, kind) for one in lines)


def _keeps_out(node: cst.CSTNode, bound: set[str], kind: Kinds, chosen: bool = False) -> bool:
    """Whether a statement does; ``chosen`` tells that it stands under an ``if`` of Python's, and may raise there."""
    if isinstance(node, (cst.With, cst.For, cst.If)):
        if isinstance(node, cst.If) and _is_tensor(kind(node.test)):
            return False
        chosen = chosen or isinstance(node, cst.If)
        suites: list[Any] = [node.body]
        orelse = getattr(node, "orelse", None)
        if orelse is not None:
            suites.append(
                orelse.body if isinstance(orelse, cst.Else) else cst.IndentedBlock([orelse])
            )
        return all(_keeps_out(one, bound, kind, chosen) for suite in suites for one in suite.body)
    if isinstance(node, cst.SimpleStatementLine):
        return all(_keeps_out(one, bound, kind, chosen) for one in node.body)
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
    return isinstance(node, (cst.Pass, cst.Assert)) or (chosen and isinstance(node, cst.Raise))


def _writes_own(call: cst.Call, bound: set[str]) -> bool:
    """Whether a call as a statement works on the module, or on what the branch made itself."""
    root: Any = call.func
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if not isinstance(root, cst.Name):
        return False
    return root.value in ("self", "nn", "torch", "init", "print") or root.value in bound


def _is_own(target: Any, bound: set[str], kind: Kinds) -> bool:
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
            pending.extend(children(one))
