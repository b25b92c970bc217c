"""Names that mean nothing before a function assigns them: Python raises where one is read too early."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.infer.facts import FunctionInfo

_OTHERWISE = (
    cst.For,
    cst.CompFor,
    cst.AsName,
    cst.NamedExpr,
    cst.ImportAlias,
    cst.Global,
    cst.Nonlocal,
    cst.Match,
    cst.FunctionDef,
    cst.ClassDef,
)
"""What else may bind a name."""


def is_unbound_at_first(function: FunctionInfo, name: str) -> bool:
    """Whether a name is a function's own and only assignments give it a value: ``if deep: layers = […]``."""
    if name in syntax.parameters(function.node):
        return False
    assigned = False
    for one in syntax.walk(function.node.body):
        if isinstance(one, cst.AssignTarget | cst.AnnAssign) and isinstance(one.target, cst.Name):
            assigned |= one.target.value == name
        elif isinstance(one, cst.AssignTarget) and _binds(one.target, name):
            return False  # ``layers, n = …``
        elif isinstance(one, _OTHERWISE) and _named_by(one, name):
            return False
    return assigned


def _binds(target: cst.CSTNode, name: str) -> bool:
    """Whether a target of an assignment that is no name binds one: as an element."""
    if isinstance(target, cst.Tuple | cst.List):
        return name in syntax.names(target)
    return False


def _named_by(node: cst.CSTNode, name: str) -> bool:
    match node:
        case cst.For(target=bound) | cst.CompFor(target=bound) | cst.NamedExpr(target=bound):
            return name in syntax.names(bound)
        case cst.AsName(name=bound):
            return name in syntax.names(bound)
        case _:  # a name within one of the others is reason enough
            return name in syntax.names(node)
