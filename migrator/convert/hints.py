"""What a value cannot be, by how it is made or by a type hint."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context

_PLAIN_TYPES = frozenset(
    "int float str bool complex tuple list dict set Sequence Iterable Mapping Tuple List Dict Set Optional Union "
    "Literal None True False".split()
)


def is_no_module(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is surely no module: what is computed with a number, or a parameter that is, or whose hint says so."""
    if isinstance(node, (cst.Comparison, cst.FormattedString, cst.List, cst.Tuple, cst.Dict)):
        return True
    if isinstance(node, cst.BinaryOperation):
        return any(isinstance(one, (cst.Integer, cst.Float)) for one in (node.left, node.right))
    if isinstance(node, cst.IfExp):
        return is_no_module(ctx, node.body) and is_no_module(ctx, node.orelse)
    if not isinstance(node, cst.Name) or ctx.frame is None:
        return False
    function = ctx.frame.info.node
    param = syntax.parameters(function).get(node.value)
    if param is None or node.value in _bound(ctx, function):
        return False  # it may be another value by now
    if param.annotation is not None:
        hint = param.annotation.annotation
        names = {n.value for n in syntax.walk(hint) if isinstance(n, cst.Name)}
        texts = any(isinstance(n, cst.SimpleString) for n in syntax.walk(hint))
        return bool(names) and not texts and names <= _PLAIN_TYPES
    computed = ctx.facts.tree.within(function.body, cst.BinaryOperation)
    return any(
        isinstance(one, cst.Name) and one.value == node.value
        for operation in computed
        if any(isinstance(n, cst.Integer | cst.Float) for n in (operation.left, operation.right))
        for one in (operation.left, operation.right)
    )


def _bound(ctx: Context, function: cst.FunctionDef) -> set[str]:
    """The names that a function binds itself."""
    binding = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.AsName)
    names: set[str] = set()
    for node in ctx.facts.tree.within(function.body, *binding):
        names |= _names(node.name if isinstance(node, cst.AsName) else node.target)
    return names


def _names(target: cst.CSTNode) -> set[str]:
    """The names that a target binds: none of ``self.act``."""
    if isinstance(target, cst.Name):
        return {target.value}
    if isinstance(target, (cst.Tuple, cst.List)):
        return set().union(*(_names(element.value) for element in target.elements))
    if isinstance(target, cst.StarredElement):
        return _names(target.value)
    return set()
