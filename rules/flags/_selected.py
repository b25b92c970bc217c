"""``x[mask] = f(y[mask])``, element by element: what is computed everywhere and kept where the mask holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import libcst as cst

from rules.below import children

CASTS = frozenset("neg negative float double long int bool".split())
"""Linear: their slope is a number, whatever they are given."""
LIKE = frozenset({"Tensor.to", "Tensor.type_as", "Tensor.type", "Tensor.cpu", "Tensor.cuda"})
"""Their arguments are dtypes, devices, and tensors that have them."""
POINTWISE = frozenset(
    "abs sign square sin cos tan tanh sigmoid relu erf erfc erfinv clamp clamp_min clamp_max maximum minimum floor ceil "
    "round trunc add sub mul div divide true_divide exp expm1 exp2 log log1p log2 log10 sqrt rsqrt pow asin acos atan "
    "arcsin arccos arctan sinh cosh asinh acosh atanh reciprocal softplus elu leaky_relu gelu silu logit logsigmoid "
    "lgamma digamma atan2 arctan2 xlogy hypot logical_not".split()
)
"""Those that are steep, infinite or undefined somewhere, perhaps where the mask does not hold."""
_OPERATORS = (
    *(cst.Add, cst.Subtract, cst.Multiply),
    *(cst.Divide, cst.Power, cst.Modulo, cst.FloorDivide),
)
_AUGMENTED = (
    *(cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign),
    *(cst.DivideAssign, cst.PowerAssign),
)


class Write(NamedTuple):
    """A write through a mask of what is computed, element by element, from tensors that the same mask selects from.

    ``singles``: tensors that have no more axes than what one place of the mask selects, and the module's own.
    ``linear``: nothing but sums and multiples, whose slope is a number where the mask does not hold, too.
    """

    target: cst.Subscript
    mask: cst.BaseExpression
    selections: tuple[cst.BaseExpression, ...]
    singles: tuple[cst.BaseExpression, ...]
    linear: bool


class _No(Exception):
    """Not element by element, or not known to be."""


def selected_write(
    statement: cst.CSTNode,
    callee: Callable[[cst.Call], str | None],
    is_number: Callable[[cst.BaseExpression], bool],
    rank: Callable[[cst.BaseExpression], int | None],
    held: Callable[[cst.Name], cst.Subscript | None] = lambda _: None,
) -> Write | None:
    """The parts of ``x[mask] = f(y[mask], z[mask])``, ``x[mask] = self.token`` or ``x[mask] += …``.

    None for any other statement, and where all get one number.

    Args:
      callee: the name that a call reaches, as of ``FlagContext``.
      is_number: whether an expression is a Python number.
      rank: how many axes a tensor has; None where that is unknown, and of what is no tensor.
      held: what a name holds, where it is what a mask selects.
    """
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target: cst.CSTNode = statement.targets[0].target
    elif isinstance(statement, cst.AugAssign) and isinstance(statement.operator, _AUGMENTED):
        target = statement.target
    else:
        return None
    mask = index_of(target)
    if mask is None:
        return None
    assert isinstance(target, cst.Subscript)
    found: list[cst.BaseExpression] = []
    singles: list[cst.BaseExpression] = []
    axes = rank(target.value), rank(mask)
    left = axes[0] - axes[1] if axes[0] is not None and axes[1] else 0

    def is_single(node: cst.BaseExpression) -> bool:
        """Whether a tensor is the same for each place that the mask selects."""
        has = rank(node)
        return has is not None and has <= max(left, 0)

    def linear(node: cst.BaseExpression) -> bool:
        """Whether a part is linear in what is selected; raises where it is not element by element."""
        selected = held(node) if isinstance(node, cst.Name) else node
        if isinstance(selected, cst.Subscript) and (index := index_of(selected)) is not None:
            if index.deep_equals(mask):
                found.append(node)
                return True
        if is_number(node):
            return True
        if is_single(node) or _is_own(node):
            if _holds(node, held) or (not _is_plain(node) and _selects(node)):
                raise _No  # x[m].mean(), which is NaN where m holds nowhere
            singles.append(node)
            return True
        if isinstance(node, cst.UnaryOperation) and isinstance(
            node.operator, (cst.Minus, cst.Plus)
        ):
            return linear(node.expression)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _OPERATORS):
            return all([linear(node.left), linear(node.right)]) and keeps(
                node.operator, node.left, node.right
            )
        if isinstance(node, cst.Call):
            name = callee(node) or ""
            short = name.rpartition(".")[2]
            if name in LIKE and isinstance(node.func, cst.Attribute):
                return linear(node.func.value)
            if not name.startswith(("torch.", "Tensor.")) or short not in CASTS | POINTWISE:
                raise _No
            parts = [item.value for item in node.args if not is_flag(item)]
            if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
                parts.append(node.func.value)
            return all(list(map(linear, parts))) and short in CASTS
        raise _No

    def keeps(operator: cst.CSTNode, left: cst.BaseExpression, right: cst.BaseExpression) -> bool:
        """Whether two linear parts make one: ``a + b``, ``2 * a``, ``a / 2``."""
        if isinstance(operator, (cst.Add, cst.Subtract, cst.AddAssign, cst.SubtractAssign)):
            return True
        if isinstance(operator, (cst.Multiply, cst.MultiplyAssign)):
            return is_number(left) or is_number(right)
        return isinstance(operator, (cst.Divide, cst.DivideAssign)) and is_number(right)

    try:
        alike = linear(statement.value)
    except _No:
        return None
    if isinstance(statement, cst.AugAssign):
        if not _is_plain(mask):
            return None
        alike = alike and keeps(statement.operator, target, statement.value)
    elif not found and not singles:
        return None  # a number for all of them
    elif found and not _is_plain(mask):
        return None  # it is asked for twice
    elif not found:
        alike = True  # nothing is computed where the mask does not hold that is not computed where it does
    return Write(target, mask, tuple(found), tuple(singles), alike)


def index_of(node: cst.CSTNode) -> cst.BaseExpression | None:
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    index = node.slice[0].slice
    if not isinstance(index, cst.Index) or index.star is not None:
        return None
    return None if isinstance(index.value, cst.Tuple) else index.value


def _is_plain(node: cst.CSTNode) -> bool:
    """Whether a mask gives the same whenever it is asked: it calls nothing."""
    if isinstance(node, (cst.Call, cst.NamedExpr, cst.Await, cst.Yield)):
        return False
    return all(map(_is_plain, children(node)))


def _selects(node: cst.CSTNode) -> bool:
    return index_of(node) is not None or any(map(_selects, children(node)))


def _holds(node: cst.CSTNode, held: Callable[[cst.Name], cst.Subscript | None]) -> bool:
    """Whether a name for what is selected stands in an expression."""
    if isinstance(node, cst.Name):
        return held(node) is not None
    return any(_holds(child, held) for child in children(node))


def _is_own(node: cst.BaseExpression) -> bool:
    """``self.scale``, ``self.embeddings[1].weight``: as many elements of a module's own as there are selected it cannot have."""
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        if isinstance(node, cst.Subscript) and not isinstance(index_of(node), cst.Integer):
            return False
        node = node.value
        if isinstance(node, cst.Name):
            return node.value == "self"
    return False


def is_flag(item: cst.Arg) -> bool:
    """``inplace=False`` and its like are no part of what is computed."""
    return isinstance(item.value, cst.Name) and item.value.value in ("True", "False", "None")
