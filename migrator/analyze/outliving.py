"""What is there before a call and after it: where a traced value is kept, the next call finds a tracer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by
from migrator.infer import ClassInfo, Facts, FunctionInfo
from migrator.infer import kinds as k

Traced = Callable[[FunctionInfo], bool]
MEMOS = ("functools.lru_cache", "functools.cache")
"""Decorators that keep what a function has returned."""
_EMPTY_MAKERS = frozenset(["dict", "list", "set", "defaultdict", "OrderedDict"])
_ASKED_FOR = frozenset(["cache_clear", "cache_info", "__wrapped__"])
"""What only a function that keeps its results has."""


def holds_tensor(facts: Facts, kind: k.Kind, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a value is a tensor or holds one: in a tuple, a dict, an object of a class of the project."""
    if isinstance(kind, k.Tensor):
        return True
    if isinstance(kind, k.Optional):
        return holds_tensor(facts, kind.inner, seen)
    if isinstance(kind, k.Tuple):
        return any(holds_tensor(facts, one, seen) for one in kind.items)
    if isinstance(kind, k.Sequence):
        return holds_tensor(facts, kind.item, seen)
    if isinstance(kind, k.Mapping):
        inside = [kind.value, *(one for _, one in kind.items)]
        return any(holds_tensor(facts, one, seen) for one in inside)
    return is_object_of_tensors(facts, kind, seen)


def is_object_of_tensors(facts: Facts, kind: k.Kind, seen: frozenset[str] = frozenset()) -> bool:
    """Whether a value is an object of a plain class of the project, or of one of its dataclasses, that has tensors."""
    info = facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    if info is None or info.name in seen:
        return False
    inside = [one for cls in info.lineage() for one in (cls.attributes, cls.statics)]
    seen = seen | {info.name}
    return any(holds_tensor(facts, one, seen) for kinds in inside for one in kinds.values())


def outlives(
    facts: Facts,
    info: FunctionInfo | None,
    node: cst.BaseExpression,
    traced: Traced,
    names: frozenset[str] = frozenset(),
) -> bool:
    """Whether what an expression names is older than the call: ``self.cache``, ``Net.cache``, ``CACHE``, ``memo={}``.

    Also by a name of the function's own, ``cache = self.cache``; ``names`` are those on the way there.
    """
    root: Any = node
    while isinstance(root, (cst.Attribute, cst.Subscript)):
        root = root.value
    if info is None or not isinstance(root, cst.Name):
        return False
    name = root.value
    if name in ("self", "cls") and name in syntax.parameters(_method(info).node):
        return root is not node and _is_kept(facts, _method(info).owner, traced)
    inner: FunctionInfo | None = info
    while inner is not None:
        parameter = syntax.parameters(inner.node).get(name)
        if parameter is not None:
            return parameter.default is not None and _is_made_once(parameter.default)
        if name in _bound_in(inner) and name not in facts.rebound:
            named = _stands_for(inner, name) if name not in names else []
            return any(outlives(facts, inner, one, traced, names | {name}) for one in named)
        inner = inner.outer
    return isinstance(facts.kind(root), (k.Class, k.Function)) or name in facts.module_env


def _method(info: FunctionInfo) -> FunctionInfo:
    while info.outer is not None:
        info = info.outer
    return info


def _is_kept(facts: Facts, owner: ClassInfo | None, traced: Traced) -> bool:
    """Whether objects of a class live longer than a call: modules do, and what their constructors make."""
    if owner is None:
        return False
    if owner.torch_base is not None:
        return True
    constructor = owner.method("__init__")
    sites = constructor.call_sites.values() if constructor is not None else ()
    return any(
        caller is None
        or (
            caller.short == "__init__"
            and caller.owner is not None
            and caller.owner.torch_base is not None
        )
        for caller in sites
    )


def _is_made_once(default: cst.BaseExpression) -> bool:
    if isinstance(default, (cst.Dict, cst.List, cst.Set)):
        return True
    called = default.func if isinstance(default, cst.Call) else None
    return isinstance(called, cst.Name) and called.value in _EMPTY_MAKERS


def _stands_for(info: FunctionInfo, name: str) -> list[cst.BaseExpression]:
    """What a function gives a name that may be an object made before: ``self.cache``, ``self.caches[i]``."""
    return [
        one.value
        for one in syntax.walk(info.node.body)
        if isinstance(one, cst.Assign)
        and isinstance(one.value, (cst.Attribute, cst.Subscript, cst.Name))
        if any(isinstance(t.target, cst.Name) and t.target.value == name for t in one.targets)
    ]


def _bound_in(info: FunctionInfo) -> set[str]:
    own = syntax.walk(info.node.body)
    return {name for one in own if isinstance(one, BINDING) for name in bound(bound_by(one))}


def is_recomputed(facts: Facts, info: FunctionInfo) -> bool:
    """Whether a function that ``lru_cache`` keeps the tensors of gives the same anew, so that the decorator may go.

    Python compares what it is called with by value; what it reads besides must stay as it is.
    """
    if info.returns is None or not holds_tensor(facts, info.returns):
        return False
    if (info.owner is not None and "staticmethod" not in info.decorators) or info.outer is not None:
        return False
    if info.draws or info.generator or info.calls_unknown:
        return False
    if facts.linked is not None and facts.linked.shared(info.name):
        return False  # what other files do with it is not looked at
    callers = [facts.tree.root if one is None else one.node for one in info.call_sites.values()]
    if any(_writes(facts, caller) for caller in callers):
        return False  # the next caller gets what this one has written
    if any(holds_tensor(facts, kind) for kind in info.params.values()):
        return False
    read = syntax.reads(info.node.body)
    if read & facts.rebound:
        return False
    return not any(
        isinstance(one, cst.Attribute) and one.attr.value in _ASKED_FOR for one in facts.tree.nodes
    )


def _writes(facts: Facts, node: cst.CSTNode) -> bool:
    """Whether something in a function may write to a tensor in place, by its looks."""
    for one in facts.tree.within(node, cst.AugAssign, cst.AssignTarget, cst.Call):
        if isinstance(one, cst.Call):
            called = one.func.attr.value if isinstance(one.func, cst.Attribute) else ""
            given = {item.keyword.value for item in one.args if item.keyword is not None}
            if (called.endswith("_") and not called.endswith("__")) or given & {"out", "inplace"}:
                return True
        elif isinstance(one, cst.AugAssign) or isinstance(one.target, cst.Subscript):
            return True
    return False
