"""What ``get_inputs()`` and ``get_init_inputs()`` of a file say about its ``Model``: they are calls of it."""

from __future__ import annotations

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.signatures import Args
from migrator.infer.statements import Statements

_METHODS = {"get_init_inputs": "__init__", "get_inputs": "forward"}


def call_model(facts: Facts, walker: Statements) -> None:
    """Note the values that the two functions return as arguments of ``Model(…)`` and of its ``forward``."""
    model = facts.classes.get(f"{facts.module}.Model")
    if model is None or model.torch_base is None:
        return
    for name, method in _METHODS.items():
        source = facts.names.get(f"{facts.module}.{name}")
        target = model.method(method)
        returned = _returned(source) if source is not None else None
        if target is None or returned is None:
            continue
        args = _arguments(facts, returned)
        walker.call_from_outside(target, args, k.Module(model.name), returned)


def _returned(function: FunctionInfo) -> cst.BaseExpression | None:
    """The value of a function's only return, at the end of its body."""
    body = function.node.body.body
    last = body[-1] if body else None
    if isinstance(function.node.body, cst.IndentedBlock) and isinstance(
        last, cst.SimpleStatementLine
    ):
        small = last.body[-1]
        return small.value if isinstance(small, cst.Return) else None
    return None


def _arguments(facts: Facts, node: cst.BaseExpression) -> Args:
    """The arguments that a returned list or dict stands for; none where that is not evident."""
    if isinstance(node, cst.Dict):
        kind = facts.kind(node)
        if not isinstance(kind, k.Mapping) or len(kind.items) != len(node.elements):
            return []
        return [(str(key), value) for key, value in kind.items]
    if not isinstance(node, (cst.List, cst.Tuple)):
        return []
    if any(
        isinstance(e, cst.StarredElement) or isinstance(e.value, cst.Dict) for e in node.elements
    ):
        return []
    return [(None, facts.kind(e.value)) for e in node.elements]
