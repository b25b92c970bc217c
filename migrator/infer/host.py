"""Tensors that only carry Python numbers to where they are sizes: ``torch.IntTensor([n])``, read as ``t[0]``."""

from __future__ import annotations

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts


def carries_numbers(facts: Facts, call: cst.Call) -> bool:
    """Whether a tensor of numbers gets one name, which is only handed to functions that read ``t[0]`` of it.

    Scripted functions take no Python number; without a script it never need be a tensor.
    """
    if len(call.args) != 1 or not isinstance(call.args[0].value, cst.List):
        return False
    if any(isinstance(facts.kind(e.value), k.Tensor) for e in call.args[0].value.elements):
        return False
    around = facts.tree.around(call)
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    name = next((_only_name(n) for n in reversed(around) if isinstance(n, cst.Assign)), None)
    if function is None or name is None:
        return False
    uses = _uses(facts, function, name)
    return len(uses) > 1 and all(
        isinstance(above, cst.AssignTarget) or _hands_over(facts, use, above) for use, above in uses
    )


def _only_name(node: cst.Assign) -> str | None:
    target = node.targets[0].target
    return target.value if len(node.targets) == 1 and isinstance(target, cst.Name) else None


def _uses(facts: Facts, function: cst.FunctionDef, name: str) -> list[tuple[cst.Name, cst.CSTNode]]:
    """Where a function names a variable, and what stands right around it."""
    return [
        (node, facts.tree.around(node)[-1])
        for node in facts.tree.within(function.body, cst.Name)
        if node.value == name
    ]


def _hands_over(facts: Facts, use: cst.Name, above: cst.CSTNode) -> bool:
    if not isinstance(above, cst.Arg) or above.star:
        return False
    call = next(n for n in reversed(facts.tree.around(use)) if isinstance(n, cst.Call))
    if not isinstance(call.func, cst.Name):
        return False
    named = [
        n
        for n in facts.tree.of_type(cst.FunctionDef)
        if n.name.value == call.func.value and len(facts.tree.around(n)) == 1
    ]
    if len(named) != 1 or any(a.star for a in call.args):
        return False
    parameters = named[0].params.params
    if above.keyword is not None:
        wanted = above.keyword.value
    elif call.args.index(above) < len(parameters):
        wanted = parameters[call.args.index(above)].name.value
    else:
        return False
    return all(_reads_number(around) for _, around in _uses(facts, named[0], wanted))


def _reads_number(above: cst.CSTNode) -> bool:
    """``t[0]``."""
    if not isinstance(above, cst.Subscript) or len(above.slice) != 1:
        return False
    index = above.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.Integer)
