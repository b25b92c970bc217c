"""Which branches of a function run when it is called with its defaults."""

from __future__ import annotations

import ast
import itertools

import libcst as cst

from migrator import syntax
from migrator.infer import FunctionInfo
from migrator.tree import Tree


def runs_by_default(tree: Tree, node: cst.CSTNode, info: FunctionInfo) -> bool:
    """Whether a part of a function surely runs where nothing is said of the arguments that have defaults."""
    defaults = _defaults(info)
    around = [*tree.around(node), node]
    for above, below in itertools.pairwise(around):
        if isinstance(above, (cst.For, cst.While, cst.Try, cst.Lambda)) and _within(info, above):
            return False
        if not isinstance(above, cst.If) or not _within(info, above) or below is above.test:
            continue
        taken = _truth(above.test, defaults)
        if taken is None or taken is not (below is above.body):
            return False
    return True


def _within(info: FunctionInfo, node: cst.CSTNode) -> bool:
    return any(one is node for one in syntax.walk(info.node))


def _defaults(info: FunctionInfo) -> dict[str, object]:
    """The defaults that are written out as constants."""
    found: dict[str, object] = {}
    for param in syntax.named_parameters(info.node.params):
        if param.default is None:
            continue
        try:
            found[param.name.value] = ast.literal_eval(syntax.code(param.default))
        except (ValueError, SyntaxError):
            continue
    return found


def _truth(node: cst.BaseExpression, known: dict[str, object]) -> bool | None:
    """Whether a test is true; None where it is not known."""
    if isinstance(node, cst.Name):
        if node.value in ("True", "False"):
            return node.value == "True"
        return bool(known[node.value]) if node.value in known else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = _truth(node.expression, known)
        return None if inner is None else not inner
    if isinstance(node, cst.BooleanOperation):
        sides = [_truth(node.left, known), _truth(node.right, known)]
        decisive = isinstance(node.operator, cst.Or)
        if decisive in sides:
            return decisive
        return None if None in sides else not decisive
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        only = node.comparisons[0]
        if isinstance(node.left, cst.Name) and node.left.value in known:
            try:
                right = ast.literal_eval(syntax.code(only.comparator))
            except (ValueError, SyntaxError):
                return None
            same = known[node.left.value] == right
            if isinstance(only.operator, (cst.Is, cst.Equal)):
                return same
            if isinstance(only.operator, (cst.IsNot, cst.NotEqual)):
                return not same
    return None
