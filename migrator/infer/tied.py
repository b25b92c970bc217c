"""Parameters of another module that a constructor keeps as its own: ``self.weight = weight``.

torch registers one parameter under both names. Such an argument is the parameter itself, a Variable in Flax, and not its
value, where the constructor does nothing with it but keep it, hand it on and ask for its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo

_FACTS = frozenset("shape size dim ndim dtype device numel".split())


def kept_whole(facts: Facts, info: FunctionInfo) -> frozenset[str]:
    """The parameters of a module's constructor that it keeps as they are."""
    if info.kept_whole is None:
        info.kept_whole = frozenset()
        owner = info.owner
        if info.short == "__init__" and owner is not None and owner.torch_base is not None:
            if info.settled is None and facts.tree.has(info.node):
                info.kept_whole = _found(facts, info.node)
    return info.kept_whole


def _found(facts: Facts, function: cst.FunctionDef) -> frozenset[str]:
    tree = facts.tree
    params = (*function.params.params[1:], *function.params.kwonly_params)
    names = {p.name.value for p in params if p.default is None or _is_none(p.default)}
    kept = set()
    for line in tree.within(function.body, cst.Assign, cst.AnnAssign):
        values = [e.value for e in line.value.elements] if in_turn(line) else [line.value]
        kept |= {one.value for one in values if type(one) is cst.Name and one.value in names}
    for call in tree.within(function.body, cst.Call):
        if _builds(facts, call):
            given = (a.value for a in call.args)
            kept |= {one.value for one in given if type(one) is cst.Name and one.value in names}
    if kept:
        for node in tree.within(function.body, cst.Name):
            if node.value in kept and not _only_keeps(facts, node):
                kept.discard(node.value)
    return frozenset(kept)


def in_turn(line: cst.CSTNode) -> bool:
    """``self.weight, self.bias = weight, bias``: each attribute gets its own value."""
    if not isinstance(line, cst.Assign) or len(line.targets) != 1:
        return False
    target, value = line.targets[0].target, line.value
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return False
    both = [*target.elements, *value.elements]
    if any(isinstance(one, cst.StarredElement) for one in both):
        return False
    named = all(isinstance(one.value, cst.Attribute) for one in target.elements)
    return named and len(target.elements) == len(value.elements)


def _is_none(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _builds(facts: Facts, call: cst.Call) -> bool:
    """Whether a call runs the constructor of a module of the file: ``Head(weight)``, ``super().__init__(weight)``."""
    func = call.func
    if isinstance(func, cst.Name):
        kind = facts.module_env.get(func.value)
        info = facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
        return info is not None and info.torch_base is not None
    return (
        isinstance(func, cst.Attribute)
        and func.attr.value == "__init__"
        and syntax.is_super(func.value)
    )


def _only_keeps(facts: Facts, node: cst.Name) -> bool:
    """Whether a constructor keeps a parameter here, hands it on, or asks for its shape or whether it is there."""
    around: Sequence[Any] = facts.tree.around(node)
    above, outer = around[-1], around[-2]
    if isinstance(above, cst.Assign):  # self.weight = weight, self.fc.weight = weight
        return len(above.targets) == 1 and isinstance(above.targets[0].target, cst.Attribute)
    if isinstance(above, cst.Element):
        return in_turn(around[-3])
    if isinstance(above, cst.AnnAssign):
        return above.value is node and isinstance(above.target, cst.Attribute)
    if isinstance(above, cst.Attribute):
        return above.value is not node or (
            above.attr.value in _FACTS and not isinstance(outer, (cst.AssignTarget, cst.Del))
        )
    if isinstance(above, cst.Comparison):
        one = above.comparisons[0]
        identity = isinstance(one.operator, (cst.Is, cst.IsNot)) and _is_none(one.comparator)
        return above.left is node and len(above.comparisons) == 1 and identity
    if isinstance(above, cst.Arg):
        if above.keyword is node:
            return True
        return not above.star and isinstance(outer, cst.Call) and _builds(facts, outer)
    return isinstance(above, cst.AssignTarget) and _fills(around, node.value)


def _fills(around: Sequence[Any], name: str) -> bool:
    """``if weight is None: weight = nn.Parameter(…)``, and nothing else gives it a value."""
    line = around[-2]
    value, block = line.value, around[-5:-3]
    if not isinstance(line, cst.Assign) or len(line.targets) != 1 or len(block) != 2:
        return False
    branch, body = block
    if not isinstance(branch, cst.If) or branch.body is not body:
        return False
    test = branch.test
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    one = test.comparisons[0]
    if not (isinstance(one.operator, cst.Is) and _is_none(one.comparator)):
        return False
    if not (isinstance(test.left, cst.Name) and test.left.value == name):
        return False
    return isinstance(value, cst.Call) or (
        isinstance(value, cst.Attribute) and isinstance(value.value, cst.Call)
    )


def kept_of(target: cst.CSTNode, value: cst.CSTNode, kind: k.Kind) -> k.Kind:
    """What targets that are no attributes are given: values; ``self.table`` of ``self.table, n = make()`` is a parameter."""
    if not isinstance(target, cst.Tuple) or type(value) is not cst.Call:
        return k.value_of(kind)
    if not isinstance(kind, k.Tuple) or len(kind.items) != len(target.elements):
        return k.value_of(kind)
    items = (
        one if isinstance(to.value, cst.Attribute) and k.is_parameter(one) else k.value_of(one)
        for to, one in zip(target.elements, kind.items, strict=True)
    )
    return k.Tuple(tuple(items), kind.fields)
