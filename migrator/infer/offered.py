"""What ``get_inputs()`` and ``get_init_inputs()`` of a file say about its ``Model``: they are calls of it.

``get_input_groups()`` and ``get_inputs_dyn_list()`` stand for several calls.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.convention import GROUPS, INIT, INPUTS
from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.signatures import Args
from migrator.infer.statements import Statements

_METHODS = {INIT: "__init__", **dict.fromkeys((INPUTS, *GROUPS), "forward")}


def call_model(facts: Facts, walker: Statements) -> None:
    """Note the values that these functions return as arguments of ``Model(…)`` and of its ``forward``."""
    model = facts.classes.get(f"{facts.module}.Model")
    if model is None or model.torch_base is None:
        return
    for name, method in _METHODS.items():
        source = facts.names.get(f"{facts.module}.{name}")
        target = model.method(method)
        returned = _returned(source) if source is not None else None
        if target is None or returned is None or source is None:
            continue
        for one in _groups(facts, source, returned) if name in GROUPS else (returned,):
            walker.call_from_outside(target, _arguments(facts, one), k.Module(model.name), one)


def _groups(
    facts: Facts, function: FunctionInfo, returned: cst.BaseExpression
) -> Iterator[cst.BaseExpression]:
    """The arguments of each call: ``return [[x, y], [z, y]]``, ``groups.append([x, y])`` and ``return groups``."""
    if isinstance(returned, (cst.List, cst.Tuple)):
        yield from (e.value for e in returned.elements)
    elif isinstance(returned, cst.Name):
        for call in facts.tree.within(function.node.body, cst.Call):
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value != "append":
                continue
            held = isinstance(func.value, cst.Name) and func.value.value == returned.value
            if held and len(call.args) == 1:
                yield call.args[0].value


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
