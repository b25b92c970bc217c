"""Initialisers that are tried: ``try: xavier_normal_(p)`` with ``except: pass`` leaves out what has fewer than two axes.

That is all torch's fans fail for (torch/nn/init.py, _calculate_fan_in_and_fan_out and orthogonal_), so it can be asked
beforehand.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import bound, with_statements

_TRIED = re.compile(
    r"\btry:\s*\n\s*[\w.]*\b(?:(?:xavier|kaiming)_(?:uniform|normal)|orthogonal)_\("
)
_OF_TWO_AXES = frozenset(
    "xavier_uniform_ xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_".split()
)
_CAUGHT = ("Exception", "BaseException", "ValueError")


def asked_first(tree: cst.Module, text: str) -> cst.Module:
    """A file that asks for the axes of a parameter where it tried whether it can be initialised."""
    return with_statements(tree, _statement) if _TRIED.search(text) else tree


def _statement(node: Any) -> Any:
    """A loop over parameters with what it tries; anywhere, what is caught by nothing but a ValueError."""
    if isinstance(node, cst.Try):
        return _asked(node, None) or node
    if not isinstance(node, cst.For) or not _goes_over_parameters(node.iter):
        return node
    own = frozenset(bound(node.target))

    def visit(one: cst.CSTNode) -> Any:
        if isinstance(one, (cst.BaseExpression, cst.SimpleStatementLine)):
            return one
        made = syntax.rebuild(one, visit)
        return (_asked(made, own) or made) if isinstance(made, cst.Try) else made

    return syntax.changed(node, body=visit(node.body))


def _goes_over_parameters(node: cst.BaseExpression) -> bool:
    """``self.named_parameters()``, ``net.parameters()``: none of them is None."""
    func = node.func if isinstance(node, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in ("parameters", "named_parameters")


def _asked(node: cst.Try, parameters: frozenset[str] | None) -> cst.If | None:
    """A question in place of a try; ``parameters``: the variables that surely are parameters, None for any tensor."""
    if node.orelse is not None or node.finalbody is not None or len(node.handlers) != 1:
        return None
    handler = node.handlers[0]
    caught = handler.type
    if caught is not None and not (isinstance(caught, cst.Name) and caught.value in _CAUGHT):
        return None
    only = isinstance(caught, cst.Name) and caught.value == "ValueError"
    if parameters is None and not only:
        return None  # an attribute that is not there, None, is caught as well
    if not _is_nothing(handler.body) or not isinstance(node.body, cst.IndentedBlock):
        return None
    match node.body.body:
        case [cst.SimpleStatementLine(body=[cst.Expr(cst.Call() as call)])]:
            pass
        case _:
            return None
    func = call.func
    name = func.attr if isinstance(func, cst.Attribute) else func
    if not isinstance(name, cst.Name) or name.value not in _OF_TWO_AXES or not call.args:
        return None
    first = call.args[0]
    rest = (one.value for one in call.args[1:])
    if first.star or first.keyword or not all(isinstance(one, _LITERALS) for one in rest):
        return None
    tensor = first.value
    if isinstance(tensor, cst.Attribute) and tensor.attr.value == "data":
        tensor = tensor.value
    known = isinstance(tensor, cst.Name) and tensor.value in (parameters or ())
    if not syntax.is_cheap(tensor) or not (known or only):
        return None
    test = syntax.substitute(syntax.parse("__p__.dim() > 1"), {"__p__": tensor.deep_clone()})
    return cst.If(test, node.body, leading_lines=node.leading_lines)


_LITERALS = (cst.SimpleString, cst.Float, cst.Integer, cst.UnaryOperation)


def _is_nothing(body: cst.BaseSuite) -> bool:
    lines = [
        small
        for one in body.body
        for small in (one.body if isinstance(one, cst.SimpleStatementLine) else [one])
    ]
    return len(lines) == 1 and isinstance(lines[0], cst.Pass)
