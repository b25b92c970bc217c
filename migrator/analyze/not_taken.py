"""Branches that no call takes: ``if mask is not None:`` of a helper which nobody here hands a mask."""

from __future__ import annotations

import libcst as cst

from migrator.infer import Facts, FunctionInfo
from migrator.infer.options import kept_away, leaves_default, options_on
from migrator.tree import Tree


def is_not_taken(facts: Facts, tree: Tree, info: FunctionInfo, node: cst.CSTNode) -> bool:
    """Whether a node of a function stands behind an option that every call leaves at its default, or that every call gives.

    Only of a function whose calls are all seen: it is called by its name alone, and by no other file.
    """
    if info.outer is not None or info.short in ("forward", "__call__") or not info.call_sites:
        return False
    if not set(info.decorators) <= _PLAIN:
        return False  # what decorates a function may call it with other arguments
    shared = facts.linked is not None and (
        info.owner is not None or facts.linked.shared(f"{facts.module}.{info.short}")
    )
    if shared:
        return False
    left = any(
        all(leaves_default(info, one, call) for call in info.call_sites)
        for one in options_on(tree, info, node)
    )
    given = left or kept_away(tree, info, node, info.call_sites, facts.kind)
    return given and _is_only_called(tree, info)


_PLAIN = frozenset(["staticmethod", "classmethod", "no_grad", "inference_mode", "script"])


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
