"""What a forward pass takes out of its arguments, and computes of that: ``y = batch["x"] * 2``, ``h, c = state``."""

from __future__ import annotations

from collections.abc import Callable, Collection

import libcst as cst

from migrator.assignments import bound
from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo
from migrator.tree import Tree

_MATHEMATICS = frozenset(
    "abs exp log log2 log10 sqrt rsqrt square sum mean prod any all argmax argmin amax amin norm cumsum cumprod softmax "
    "log_softmax sigmoid tanh relu clamp logsumexp".split()
)
"""Methods of tensors that no number, list, dict or text has, and that arrays of numpy have, if at all, as they are."""
_PLAIN = frozenset({"max", "min"})
"""Those that mean the same without an argument."""
_AXES = (cst.Integer, cst.Float, cst.UnaryOperation, cst.Tuple, cst.List)
"""What these are handed by place: axes, an exponent, bounds."""
_HANDING = frozenset({"zip", "enumerate", "reversed", "list", "tuple", "iter", "next"})


def is_of_items(facts: Facts, info: FunctionInfo | None, call: cst.Call) -> bool:
    """``y.sum()`` in a forward pass, of what it is handed within a dict, a list or a tuple."""
    func, owner = call.func, info.owner if info is not None else None
    if info is None or info.short != "forward" or owner is None or owner.torch_base is None:
        return False
    if not isinstance(func, cst.Attribute) or not isinstance(facts.kind(func.value), k.Unknown):
        return False
    name = func.attr.value
    if name not in _MATHEMATICS and not (name in _PLAIN and not call.args):
        return False
    if not all(isinstance(a.value, _AXES) or a.keyword is not None for a in call.args):
        return False  # ``block.norm(x)``, ``logger.log("loss")``: a method of something else
    return _comes_of(func.value, items(facts.tree, info)) and not isinstance(func.value, cst.Call)


def items(tree: Tree, info: FunctionInfo) -> frozenset[str]:
    """The names of a function that stand for its arguments, parts of them, or what is computed of those."""
    if info.items is None:
        info.items = frozenset(spread(tree, info, _comes_of))
    return info.items


def spread(
    tree: Tree, info: FunctionInfo, comes_of: Callable[[cst.BaseExpression, set[str]], bool]
) -> set[str]:
    """The names of a function that its arguments reach: those of what ``comes_of`` says comes of such names."""
    flows: list[tuple[cst.BaseExpression, cst.BaseExpression]] = [
        (target.target, one.value)
        for one in tree.within(info.node.body, cst.Assign)
        for target in one.targets
    ]
    flows += [(one.target, one.iter) for one in tree.within(info.node.body, cst.For, cst.CompFor)]
    flows += [(one.target, one.value) for one in tree.within(info.node.body, cst.AugAssign)]
    found = {name for name in info.params if name not in ("self", "cls")}
    size = -1
    while size != len(found):
        size = len(found)
        for target, value in flows:
            if comes_of(value, found):
                while isinstance(target, cst.Subscript):  # put into what a name stands for
                    target = target.value
                found |= set(bound(target))
    return found


def _comes_of(node: cst.CSTNode, given: Collection[str]) -> bool:
    """Whether an expression is made of arguments by indices and arithmetic alone: attributes may be anything."""
    if isinstance(node, cst.Name):
        return node.value in given
    if isinstance(node, cst.Subscript):
        return _comes_of(node.value, given)
    if isinstance(node, cst.BinaryOperation):
        return _comes_of(node.left, given) or _comes_of(node.right, given)
    if isinstance(node, cst.UnaryOperation):
        return _comes_of(node.expression, given)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return node.func.value in _HANDING and any(_comes_of(a.value, given) for a in node.args)
    return False
