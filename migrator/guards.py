"""Questions that decide nothing: whether something is computed with or without checkpoints.

``if self.with_cp and x.requires_grad: out = cp.checkpoint(f, x)``, and ``out = f(x)`` otherwise: ``requires_grad`` of
a value has no counterpart in JAX, and both branches compute the same.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax

_IMPORTED = re.compile(r"torch\.utils\.checkpoint|from torch\.utils import [^\n]*\bcheckpoint")
_OWN = re.compile(r"\bdef checkpoint\b|^\s*checkpoint *=|\bself\.checkpoint\b", re.M)
"""Another function of the name."""


def without_guards(tree: cst.Module, text: str) -> cst.Module:
    """A file whose checkpoints do not go by whether a tensor requires a gradient."""
    if "requires_grad" not in text or _IMPORTED.search(text) is None or _OWN.search(text):
        return tree
    found: dict[cst.CSTNode, cst.BaseExpression] = {}
    for node in syntax.walk(tree):
        if isinstance(node, cst.If) and isinstance(node.orelse, cst.Else):
            test = _without(node.test)
            if test is not None and _is_same(_only(node.body), _only(node.orelse.body)):
                found[node] = test
    if not found:
        return tree

    def visit(node: cst.CSTNode) -> Any:
        made = syntax.rebuild(node, visit)
        return syntax.changed(made, test=found[node]) if node in found else made

    made: cst.Module = visit(tree)
    return made


def _without(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """``a`` of ``a and x.requires_grad``; None where nothing of the kind is asked, or nothing else is."""
    if not isinstance(test, cst.BooleanOperation) or not isinstance(test.operator, cst.And):
        return None
    if test.lpar:
        return None
    if _asks(test.right):
        return test.left
    if _asks(test.left):
        return test.right
    left = _without(test.left)
    return None if left is None else syntax.changed(test, left=left)


def _asks(node: cst.BaseExpression) -> bool:
    """``x.requires_grad``, ``any(x.requires_grad for x in xs)``."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and len(node.args) == 1:
        given = node.args[0].value
        each = isinstance(given, (cst.GeneratorExp, cst.ListComp))
        return node.func.value in ("any", "all") and each and _asks(given.elt)  # type: ignore[attr-defined]
    return isinstance(node, cst.Attribute) and node.attr.value == "requires_grad"


def _only(body: cst.BaseSuite) -> cst.Assign | cst.Return | None:
    """The assignment or return that a branch consists of."""
    if not isinstance(body, cst.IndentedBlock) or len(body.body) != 1:
        return None
    line = body.body[0]
    only = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    return only if isinstance(only, (cst.Assign, cst.Return)) else None


def _is_same(one: cst.Assign | cst.Return | None, other: cst.Assign | cst.Return | None) -> bool:
    """Whether the one is the other with a checkpoint, but for the options of it."""
    if one is None or type(one) is not type(other) or not isinstance(one.value, cst.Call):
        return False
    func = one.value.func.attr if isinstance(one.value.func, cst.Attribute) else one.value.func
    if not isinstance(func, cst.Name) or func.value != "checkpoint" or not one.value.args:
        return False
    called, *given = [a for a in one.value.args if a.keyword is None]
    plain = syntax.with_args(cst.Call(called.value), [cst.Arg(a.value, star=a.star) for a in given])
    own = other.value
    if not isinstance(own, cst.Call) or any(a.keyword is not None for a in own.args):
        return False
    again = [cst.Arg(a.value, star=a.star) for a in own.args]
    if syntax.code(plain) != syntax.code(syntax.with_args(cst.Call(own.func), again)):
        return False
    if isinstance(one, cst.Assign) and isinstance(other, cst.Assign):
        ours, theirs = ([syntax.code(t.target) for t in each.targets] for each in (one, other))
        return ours == theirs
    return True
