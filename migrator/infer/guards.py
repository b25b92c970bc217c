"""The texts that a name may be where a branch or an assertion has asked for them: ``if kind in ["LSTM", "GRU"]:``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.source import dotted
from migrator.tree import Tree


def asked_texts(tree: Tree, node: cst.BaseExpression) -> list[str]:
    """What a name or attribute is one of, in the order they are written; empty where nothing has asked."""
    name = dotted(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
    if name is None:
        return []
    around = list(tree.around(node))
    inner: cst.CSTNode = node
    for outer in reversed(around):
        if isinstance(outer, (cst.If, cst.IfExp)) and inner is outer.body:
            found = _texts(outer.test, name, tree)
            if found and not _bound(outer.body, name):
                return found
        if isinstance(outer, cst.IndentedBlock):
            found = _before(outer, inner, name, tree)
            if found:
                return found
        if isinstance(outer, cst.FunctionDef):
            return []
        inner = outer
    return []


def _before(block: cst.IndentedBlock, inner: cst.CSTNode, name: str, tree: Tree) -> list[str]:
    """``assert kind in (…)``, and ``if kind not in (…): raise``, before a statement of the same block."""
    statements = list(block.body)
    place = next(i for i, one in enumerate(statements) if one is inner)
    for i in range(place - 1, -1, -1):
        for test in _asserted(statements[i]):
            found = _texts(test, name, tree)
            if found:
                later = statements[i + 1 : place + 1]
                return [] if any(_bound(one, name) for one in later) else found
    return []


def _asserted(statement: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(statement, cst.SimpleStatementLine):
        yield from (one.test for one in statement.body if isinstance(one, cst.Assert))
    if isinstance(statement, cst.If) and statement.orelse is None:
        last = statement.body.body[-1]
        raises = isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Raise)
        if raises:
            inverse = _inverse(statement.test)
            yield from () if inverse is None else (inverse,)


def _inverse(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """``kind in (…)`` for ``kind not in (…)`` and ``not kind in (…)``."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return test.expression
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        one = test.comparisons[0]
        if isinstance(one.operator, cst.NotIn):
            return syntax.changed(test, comparisons=[syntax.changed(one, operator=cst.In())])
        if isinstance(one.operator, cst.NotEqual):
            return syntax.changed(test, comparisons=[syntax.changed(one, operator=cst.Equal())])
    return None


def _texts(test: cst.BaseExpression, name: str, tree: Tree) -> list[str]:
    """The texts that a test which holds says a name is one of."""
    if isinstance(test, cst.BooleanOperation):
        sides = [_texts(test.left, name, tree), _texts(test.right, name, tree)]
        if isinstance(test.operator, cst.And):
            return sides[0] or sides[1]
        return list(dict.fromkeys(sides[0] + sides[1])) if all(sides) else []
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return []
    left, one = test.left, test.comparisons[0]
    if not isinstance(left, (cst.Name, cst.Attribute)) or dotted(left) != name:
        return []
    options: list[cst.BaseExpression] = []
    if isinstance(one.operator, cst.Equal):
        options = [one.comparator]
    elif isinstance(one.operator, cst.In):
        several = _constant(one.comparator, tree)
        if isinstance(several, (cst.List, cst.Tuple, cst.Set)):
            options = [element.value for element in several.elements]
    texts = [o.evaluated_value for o in options if isinstance(o, cst.SimpleString)]
    found = [text for text in texts if isinstance(text, str)]
    return list(dict.fromkeys(found)) if len(found) == len(options) else []


def _constant(node: cst.BaseExpression, tree: Tree) -> cst.BaseExpression:
    """What a name at the top of the file stands for that is bound nowhere else and never changed."""
    if not isinstance(node, cst.Name):
        return node
    bound = [
        item
        for item in tree.of_type(cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.Param)
        if node.value in syntax.names(item.name if isinstance(item, cst.Param) else item.target)
    ]
    if len(bound) != 1 or not isinstance(bound[0], (cst.AssignTarget, cst.AnnAssign)):
        return node
    item = tree.parent(bound[0]) if isinstance(bound[0], cst.AssignTarget) else bound[0]
    line = tree.parent(item)
    changed = any(
        isinstance(one.value, cst.Name) and one.value.value == node.value
        for one in tree.of_type(cst.Attribute)
    )
    top = isinstance(line, cst.SimpleStatementLine) and tree.parent(line) is tree.root
    return item.value if top and not changed and item.value is not None else node


def _bound(node: cst.CSTNode, name: str) -> bool:
    """Whether a name, or what an attribute belongs to, gets another value."""
    root = name.partition(".")[0]
    for one in syntax.walk(node):
        targets: list[cst.CSTNode] = []
        if isinstance(one, cst.Assign):
            targets = [target.target for target in one.targets]
        elif isinstance(one, (cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.CompFor)):
            targets = [one.target]
        for target in targets:
            words = {id(one.attr) for one in syntax.walk(target) if isinstance(one, cst.Attribute)}
            for part in syntax.walk(target):
                if id(part) in words:  # ``self.activation`` is no ``activation``
                    continue
                if isinstance(part, (cst.Name, cst.Attribute)) and dotted(part) in (name, root):
                    if dotted(part) == name or part is target:
                        return True
    return False
