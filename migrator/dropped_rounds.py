"""Rounds of a loop that are left out by a draw in training, LayerDrop: said in one of many ways, written in one.

``if self.training: d = torch.rand([]); if d < p: continue`` before the rest of the round becomes the rest of it under
``if not (self.training and torch.rand([]) < p):``, and ``drop = True if self.training and d < p else False``, or the same
in several lines, becomes ``drop = self.training and d < p``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_DRAWN = re.compile(r"\btorch\.rand\(|\brandom\.\w+\(")
_HOST = frozenset(
    f"{one}.{name}"
    for one in ("random", "np.random", "numpy.random")
    for name in ("random", "rand", "uniform", "random_sample")
)
_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)


def under_tests(tree: cst.Module, text: str) -> cst.Module:
    """A file whose loops leave rounds out by one test around what they do else."""
    if ".training" not in text or "rand" not in text or not _DRAWN.search(text):
        return tree
    if not re.search(r"^\s*for ", text, re.M):
        return tree
    return with_functions(tree, _function)


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    names = syntax.names(function)

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)) and node is not function:
            return node  # it has been looked at
        made = syntax.rebuild(node, visit)
        if isinstance(made, cst.For) and isinstance(made.body, cst.IndentedBlock):
            lines = list(_lines(made.body.body, names))
            if any(a is not b for a, b in zip(lines, made.body.body, strict=False)):
                return syntax.changed(made, body=syntax.changed(made.body, body=lines))
        return made

    found = visit(function)
    assert isinstance(found, cst.FunctionDef)
    return found


def _lines(
    lines: Sequence[cst.BaseStatement], names: dict[str, int]
) -> Iterator[cst.BaseStatement]:
    for place, line in enumerate(lines):
        rest = list(lines[place + 1 :])
        test = _leaving(line, names)
        if test is not None and rest:
            body = cst.IndentedBlock(list(_lines(rest, names)))
            inner: Any = syntax.parenthesized(test)
            asked = cst.UnaryOperation(cst.Not(), inner)
            yield cst.If(asked, body, leading_lines=line.leading_lines)  # type: ignore[attr-defined]
            return
        name = _is_false(line)
        test = _setting(rest[0], name, names) if name and rest else None
        if test is not None:
            yield _assigned(line, name, test)
            yield from _lines(rest[1:], names)
            return
        yield _chosen(line) or line


def _leaving(line: cst.CSTNode, names: dict[str, int]) -> cst.BaseExpression | None:
    """The test of what leaves the rest of a round out."""
    if not isinstance(line, cst.If) or line.orelse is not None:
        return None
    return _test(line, names, lambda body: isinstance(_only(body), cst.Continue))


def _setting(line: cst.CSTNode, name: str, names: dict[str, int]) -> cst.BaseExpression | None:
    """The test under which a name becomes True."""
    if not isinstance(line, cst.If) or line.orelse is not None:
        return None

    def sets(body: cst.BaseSuite) -> bool:
        only = _only(body)
        return (
            isinstance(only, cst.Assign)
            and len(only.targets) == 1
            and syntax.code(only.targets[0].target) == name
            and syntax.code(only.value) == "True"
        )

    return _test(line, names, sets)


def _test(line: cst.If, names: dict[str, int], does: object) -> cst.BaseExpression | None:
    """``self.training and torch.rand([]) < p``, on one line or with a draw between two."""
    assert callable(does)
    if does(line.body):
        return line.test if _is_skip(line.test) else None
    if not _is_mode(line.test) or not isinstance(line.body, cst.IndentedBlock):
        return None
    *before, last = line.body.body
    if not isinstance(last, cst.If) or last.orelse is not None or not does(last.body):
        return None
    order = last.test
    if not _is_order(order):
        return None
    if before:
        drawn = _statement(before[0])
        if len(before) != 1 or not isinstance(drawn, cst.Assign) or len(drawn.targets) != 1:
            return None
        target = drawn.targets[0].target
        if not isinstance(target, cst.Name) or names.get(target.value) != 2:
            return None
        if not isinstance(drawn.value, cst.Call) or not _is_draw(drawn.value):
            return None
        used = [n for n in syntax.walk(order) if isinstance(n, cst.Name)]
        if sum(n.value == target.value for n in used) != 1:
            return None
        order = syntax.substitute(order, {target.value: drawn.value})
    elif not any(_is_draw(one) for one in syntax.walk(order)):
        return None
    order = syntax.unparenthesized(order)
    return cst.BooleanOperation(line.test, cst.And(), order)


def _is_skip(node: cst.BaseExpression) -> bool:
    """``self.training and d < p``"""
    return (
        isinstance(node, cst.BooleanOperation)
        and isinstance(node.operator, cst.And)
        and _is_mode(node.left)
        and _is_order(node.right)
    )


def _is_mode(node: cst.BaseExpression) -> bool:
    return syntax.code(syntax.unparenthesized(node)) == "self.training"


def _is_order(node: cst.BaseExpression) -> bool:
    return (
        isinstance(node, cst.Comparison)
        and len(node.comparisons) == 1
        and isinstance(node.comparisons[0].operator, _ORDERS)
    )


def _is_draw(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Call):
        return False
    name = syntax.code(node.func)
    return name in _HOST or (name in ("torch.rand", "rand") and len(node.args) == 1)


def _is_false(line: cst.CSTNode) -> str:
    """The name that a statement makes False."""
    only = _statement(line)
    if isinstance(only, cst.Assign) and len(only.targets) == 1:
        target = only.targets[0].target
        if isinstance(target, cst.Name) and syntax.code(only.value) == "False":
            return target.value
    return ""


def _chosen(line: cst.BaseStatement) -> cst.BaseStatement | None:
    """``drop = self.training and d < p`` for ``drop = True if self.training and d < p else False``."""
    only = _statement(line)
    if not isinstance(only, cst.Assign) or not isinstance(only.value, cst.IfExp):
        return None
    choice = only.value
    if syntax.code(choice.body) != "True" or syntax.code(choice.orelse) != "False":
        return None
    if not _is_skip(choice.test):
        return None
    made = syntax.changed(only, value=syntax.unparenthesized(choice.test))
    return syntax.changed(line, body=[made])


def _assigned(line: cst.BaseStatement, name: str, test: cst.BaseExpression) -> cst.BaseStatement:
    made = cst.Assign([cst.AssignTarget(cst.Name(name))], syntax.unparenthesized(test))
    return syntax.changed(line, body=[made])


def _statement(line: cst.CSTNode) -> cst.CSTNode | None:
    """The small statement that is all of a line."""
    alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    return line.body[0] if alone else None  # type: ignore[attr-defined]


def _only(body: cst.BaseSuite) -> cst.CSTNode | None:
    if isinstance(body, cst.SimpleStatementSuite):
        return body.body[0] if len(body.body) == 1 else None
    return _statement(body.body[0]) if len(body.body) == 1 else None
