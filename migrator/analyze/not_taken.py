"""Branches that no call takes: ``if mask is not None:`` of a helper which nobody here hands a mask."""

from __future__ import annotations

import libcst as cst

from migrator.infer import Facts, FunctionInfo
from migrator.tree import Tree


def is_not_taken(facts: Facts, tree: Tree, info: FunctionInfo, node: cst.CSTNode) -> bool:
    """Whether a node of a function stands where an argument is given which is None by default, and no call gives.

    Only of a function whose calls are all seen: it is called by its name alone, and by no other file.
    """
    if info.outer is not None or info.short in ("forward", "__call__") or not info.call_sites:
        return False
    if not set(map(str, info.decorators)) <= _PLAIN:
        return False  # what decorates a function may call it with other arguments
    shared = facts.linked is not None and (
        info.owner is not None or facts.linked.shared(f"{facts.module}.{info.short}")
    )
    options = [] if shared else _options(tree, info, node)
    return any(
        all(_leaves_out(info, one, call) for call in info.call_sites) for one in options
    ) and _is_only_called(tree, info)


_PLAIN = {
    "staticmethod",
    "classmethod",
    "torch.no_grad",
    "torch.inference_mode",
    "torch.jit.script",
}


def _options(tree: Tree, info: FunctionInfo, node: cst.CSTNode) -> list[str]:
    """The parameters, None by default and given no other value, that are something wherever a node is run."""
    params = info.node.params
    default = {one.name.value: one.default for one in (*params.params, *params.kwonly_params)}
    around = tree.around(node)
    tests = [
        one.test
        for one in around[around.index(info.node) + 1 :]
        if isinstance(one, (cst.If, cst.IfExp)) and tree.holds(one.body, node)
    ]
    names = [_given(test) for test in tests]
    return [
        name
        for name in names
        if isinstance(default.get(name), cst.Name)
        and default[name].value == "None"  # type: ignore[union-attr]
        and not _is_set(tree, info, name, node)
    ]


def _given(test: cst.BaseExpression) -> str:
    """``mask`` of ``mask is not None``."""
    match test:
        case cst.Comparison(
            cst.Name(name), [cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))]
        ) | cst.Name(name):
            return name
    return ""


def _is_set(tree: Tree, info: FunctionInfo, name: str, node: cst.CSTNode) -> bool:
    """Whether a function gives a parameter another value, outside of the branch that a node stands in."""
    branch = [
        one
        for one in tree.around(node)
        if isinstance(one, (cst.If, cst.IfExp)) and _given(one.test) == name
    ]
    binding = (cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.For, cst.NamedExpr, cst.AsName)
    for one in tree.within(info.node.body, *binding):
        bound = one.name if isinstance(one, cst.AsName) else one.target
        named = any(isinstance(part, cst.Name) and part.value == name for part in tree.below(bound))
        if named and not any(tree.holds(each.body, one) for each in branch):
            return True
    return False


def _leaves_out(info: FunctionInfo, option: str, call: cst.CSTNode) -> bool:
    """Whether a call leaves an argument out, or gives None for it."""
    if not isinstance(call, cst.Call) or any(one.star for one in call.args):
        return False
    params = info.node.params
    names = [one.name.value for one in (*params.posonly_params, *params.params)]
    if info.owner is not None and "staticmethod" not in info.decorators:
        names = names[1:]
    positional = [one.value for one in call.args if one.keyword is None]
    given = [one.value for one in call.args if one.keyword and one.keyword.value == option]
    if option in names:
        given += positional[names.index(option) :][:1]
    return all(isinstance(one, cst.Name) and one.value == "None" for one in given)


def _is_only_called(tree: Tree, info: FunctionInfo) -> bool:
    """Whether a function is named where it is called, and nowhere else."""
    for node in tree.of_type(cst.Name):
        if node.value != info.short:
            continue
        *_, outer, parent = tree.around(node)
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            parent, node = outer, parent
        called = isinstance(parent, cst.Call) and parent.func is node
        if not called and parent is not info.node:
            return False
    return True
