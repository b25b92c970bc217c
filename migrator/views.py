"""What a write to an expression changes: the tensor that an item, a view or ``data`` is part of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import libcst as cst

from migrator import syntax


def undressed(node: Any) -> Any:
    """``x`` of ``x.data`` and ``x.detach()``, through which torch writes to x past its gradient."""
    while True:
        if is_data(node):
            node = node.value
        elif is_detached(node):
            node = node.func.value
        else:
            return node


def is_data(node: cst.CSTNode) -> TypeGuard[cst.Attribute]:
    """Whether a node is ``x.data``, and not what a module calls so, ``self.data``."""
    return (
        isinstance(node, cst.Attribute)
        and node.attr.value == "data"
        and not (isinstance(node.value, cst.Name) and node.value.value == "self")
    )


def is_detached(node: cst.CSTNode) -> bool:
    """Whether a node is ``x.detach()``."""
    func = node.func if isinstance(node, cst.Call) and not node.args else None
    return isinstance(func, cst.Attribute) and func.attr.value == "detach"


def written_base(node: cst.CSTNode, owns: Callable[[cst.CSTNode], bool] | None = None) -> Any:
    """What a write to ``x``, ``x[i]``, ``x[i][j]``, ``x.view(n)``, ``x.data`` or ``x.detach()`` changes: ``x``, ``self.x``.

    Args:
      owns: whether what a method is asked of is a module: ``self.squeeze(x)`` calls a layer of that name.
    """
    while True:
        node = undressed(node)
        inner = node.value if isinstance(node, cst.Subscript) else viewed(node)
        if inner is None or (owns is not None and isinstance(node, cst.Call) and owns(inner)):
            return node
        node = inner


EXACT_VIEWS = frozenset(
    "view view_as unsqueeze squeeze transpose swapaxes swapdims t permute movedim moveaxis diagonal narrow "
    "select".split()
)
"""Methods, and functions of torch, whose result is always a view of what they are called on, never a copy."""


def viewed(node: cst.CSTNode) -> cst.BaseExpression | None:
    """``x`` of ``x.view(n)`` and ``torch.diagonal(x)``; None for what is no such view."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if node.func.attr.value not in EXACT_VIEWS:
        return None
    if not isinstance(node.func.value, cst.Name) or node.func.value.value != "torch":
        return node.func.value
    plain = node.args and node.args[0].keyword is None and not node.args[0].star
    return node.args[0].value if plain else None


def _is_written_where_read(small: cst.Assign, target: cst.Subscript) -> bool:
    """``x[:, 0] = x[:, 0].masked_fill_(m, 0)``, where nothing else is read of ``x``."""
    root: cst.BaseExpression = target
    while isinstance(root, (cst.Subscript, cst.Attribute)):
        root = root.value
    if not isinstance(root, cst.Name) or not small.targets[0].target.deep_equals(target):
        return False
    called = any(isinstance(one, (cst.Call, cst.NamedExpr)) for one in syntax.walk(target))
    return not called and syntax.names(small.value).get(root.value) == 1


def is_assigned_to(statement: cst.CSTNode | None, target: cst.BaseExpression) -> bool:
    """``w.data = w.data.zero_().add(1)``: what is written goes, as its own value takes its place."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return False
    if isinstance(target, cst.Subscript):
        return _is_written_where_read(small, target)
    if not isinstance(target, cst.Attribute):
        return False
    owner, read = small.targets[0].target, syntax.code(target)
    same = isinstance(owner, cst.Attribute) and undressed(owner).deep_equals(target)
    alike = [n for n in syntax.walk(small.value) if isinstance(n, cst.Attribute)]
    return same and sum(syntax.code(one) == read for one in alike) == 1
