"""Attributes that begin as a number or an empty list, become a tensor, and are asked which of them they are.

``self.v = 0.0`` in the constructor of a spiking neuron, and ``if isinstance(self.v, float): self.v = torch.zeros_like(x)``.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.tree import Tree

_ASKING = frozenset({"isinstance", "is_tensor", "type", "hasattr", "len", "callable"})


def asked_of_type(tree: Tree, node: cst.ClassDef) -> frozenset[str]:
    """The attributes of a class that a constructor gives a plain value, another method another one, and one asks about.

    Args:
      tree: that of the file.
      node: the class.
    """
    plain: set[str] = set()
    empty: set[str] = set()  # of these a truth value tells, too
    given: set[str] = set()
    asked: set[str] = set()
    truths: set[str] = set()
    for method in node.body.body:
        if not isinstance(method, cst.FunctionDef):
            continue
        for line in tree.within(method.body, cst.Assign, cst.AnnAssign, cst.AugAssign):
            if line.value is None:
                continue
            targets = [line.target] if isinstance(line, cst.AugAssign) else syntax.assigned_to(line)
            names = {_own(one) for target in targets for one in _parts(target)}
            if method.name.value == "__init__":
                plain |= names if is_plain(line.value) else set()
                empty |= names if _is_empty(line.value) else set()
            elif isinstance(line, cst.AugAssign) or not is_plain(line.value):
                given |= names
        for call in tree.within(method.body, cst.Call):
            func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            if isinstance(func, cst.Name) and func.value in _ASKING and call.args:
                asked.add(_own(call.args[0].value))
        for test in tree.within(method.body, cst.UnaryOperation):
            if isinstance(test.operator, cst.Not):
                truths.add(_own(test.expression))
        for test in tree.within(method.body, cst.If):
            truths.add(_own(test.test))
        for test in tree.within(method.body, cst.Comparison):
            if any(isinstance(one.operator, (cst.Is, cst.IsNot)) for one in test.comparisons):
                if not any(_is_none(one.comparator) for one in test.comparisons):
                    asked.add(_own(test.left))
    return frozenset(plain & given & (asked | (truths & empty))) - {""}


def is_plain(node: cst.BaseExpression) -> bool:
    """A number, a truth value, a text, an empty list or tuple or dict."""
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    if isinstance(node, (cst.List, cst.Tuple, cst.Dict)):
        return not node.elements
    if isinstance(node, cst.Name):
        return node.value in ("True", "False")
    return isinstance(node, (cst.Integer, cst.Float, cst.SimpleString))


def _is_empty(node: cst.BaseExpression) -> bool:
    """An empty list, tuple, dict or text."""
    return isinstance(node, (cst.List, cst.Tuple, cst.Dict, cst.SimpleString))


def _parts(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """``self.v`` and ``s`` of ``self.v, s``."""
    several = isinstance(target, (cst.Tuple, cst.List))
    return [one.value for one in target.elements] if several else [target]  # type: ignore[attr-defined]


def _own(node: cst.CSTNode) -> str:
    """``v`` of ``self.v``; empty for anything else."""
    of_self = isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    return node.attr.value if of_self and node.value.value == "self" else ""  # type: ignore[attr-defined]


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
