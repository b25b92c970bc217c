"""Parameters that are initialised where they are made: ``init.normal_(nn.Parameter(x))`` is ``nn.Parameter(init.normal_(x))``.

What ``torch.nn.init`` is handed it gives back, so that either is the same parameter with the same numbers; so do functions
of the file that return what they initialise.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax

_NAMES = frozenset(
    "uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_ xavier_normal_ kaiming_uniform_ "
    "kaiming_normal_ orthogonal_ sparse_".split()
)
_WRAPPED = re.compile(r"\b(\w+)\(\s*(?:\w+=)?(?:\w+\.)*Parameter\(")


def within_parameters(tree: cst.Module, text: str) -> cst.Module:
    """A file that makes parameters of tensors that are initialised."""
    called = set(_WRAPPED.findall(text)) - {"Parameter"}
    if not called:
        return tree
    defined = [one for one in syntax.walk(tree) if isinstance(one, cst.FunctionDef)]
    own: dict[str, list[str | None]] = {}
    for one in defined:
        own.setdefault(one.name.value, []).append(_returned(one))
    names = dict.fromkeys(_NAMES - set(own), "tensor")
    names |= {name: some[0] for name, some in own.items() if len(some) == 1 and some[0]}
    if called.isdisjoint(names):
        return tree
    changed: Any = tree.visit(
        _Wrapping(names, {one.name.value: _is_method(one) for one in defined})
    )
    return changed


def _is_method(function: cst.FunctionDef) -> bool:
    params = function.params.params
    return bool(params) and params[0].name.value == "self"


def _is_of_self(func: cst.BaseExpression) -> bool | None:
    """True for ``self.init_(…)``, False for ``init_(…)``, None for what is asked of anything else."""
    if isinstance(func, cst.Name):
        return False
    own = isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name)
    return True if own and func.value.value == "self" else None  # type: ignore[attr-defined]


def _returned(function: cst.FunctionDef) -> str | None:
    """The first parameter of a function that returns it whatever comes: ``return w``, ``return init.normal_(w)``."""
    params = [one.name.value for one in function.params.params][_is_method(function) :]
    if not params or function.decorators or function.asynchronous is not None:
        return None
    first, end = params[0], function.body.body[-1]
    last = end.body[-1] if isinstance(end, cst.SimpleStatementLine) else end
    if isinstance(end, cst.With) and end.body.body:
        inner = end.body.body[-1]
        last = inner.body[-1] if isinstance(inner, cst.SimpleStatementLine) else inner
    if not isinstance(last, cst.Return):
        return None
    for one in syntax.walk(function.body):
        if isinstance(one, cst.Return) and not _gives(one.value, first):
            return None
        if isinstance(one, (cst.AssignTarget, cst.AugAssign, cst.For, cst.NamedExpr)):
            if first in syntax.names(one.target):
                return None
        if isinstance(one, (cst.Yield, cst.FunctionDef, cst.Lambda)):
            return None
    return first if _only_filled(function, first) else None


_ASKING = frozenset("_calculate_fan_in_and_fan_out _calculate_correct_fan len".split())


def _only_filled(function: cst.FunctionDef, name: str) -> bool:
    """Whether a function does nothing else with an argument than to ask for its size, fill it and return it."""
    seen = 0
    for one in syntax.walk(function.body):
        held: list[cst.CSTNode | None] = []
        if isinstance(one, cst.Attribute):
            held = [one.value]
        elif isinstance(one, cst.Return):
            held = [one.value]
        elif isinstance(one, cst.Call) and _last(one.func) in _NAMES | _ASKING:
            held = [item.value for item in one.args]
        seen += sum(isinstance(node, cst.Name) and node.value == name for node in held)
    return seen == syntax.names(function.body)[name]


def _gives(value: cst.BaseExpression | None, name: str) -> bool:
    """Whether an expression is what a name stands for, be it filled in place."""
    match value:
        case cst.Name(value=said):
            return said == name
        case cst.Call(func=cst.Attribute(value=cst.Name(value=said), attr=cst.Name(value=method))):
            if said == name:
                return method.endswith("_") and method != "requires_grad_"
    if isinstance(value, cst.Call) and _last(value.func) in _NAMES and value.args:
        first = value.args[0]
        return first.keyword is None and not first.star and _gives(first.value, name)
    return False


class _Wrapping(cst.CSTTransformer):
    def __init__(self, names: dict[str, str], own: dict[str, bool]) -> None:
        self.names, self.own = names, own
        """Functions, and what they call the argument that they give back; those of the file, and whether they are methods."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        param = self.names.get(_last(func))
        if param is None or not updated_node.args:
            return updated_node
        if _last(func) in self.own and self.own[_last(func)] is not _is_of_self(func):
            return updated_node  # of something else by the same name
        first, *others = updated_node.args
        made = first.value
        if first.star or not isinstance(made, cst.Call):
            return updated_node
        if first.keyword is not None and first.keyword.value != param:
            return updated_node
        if _last(made.func) != "Parameter" or not made.args:
            return updated_node
        tensor, *options = made.args
        if tensor.star or (tensor.keyword is not None and tensor.keyword.value != "data"):
            return updated_node
        filled = syntax.with_args(
            updated_node, [syntax.changed(first, value=tensor.value), *others]
        )
        return syntax.with_args(made, [syntax.changed(tensor, value=filled), *options])


def _last(node: cst.BaseExpression) -> str:
    name = node.attr if isinstance(node, cst.Attribute) else node
    return name.value if isinstance(name, cst.Name) else ""
