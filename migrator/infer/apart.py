"""Which classes of a file have nothing to do with another: an attribute of theirs is another one."""

from __future__ import annotations

from collections.abc import Set

import libcst as cst

from migrator.infer.facts import Facts, FunctionInfo


def apart_from(facts: Facts, function: FunctionInfo | None) -> frozenset[int]:
    """The classes of the file whose instances are none of a function's own class, nor can be."""
    owner = function.owner if function is not None else None
    if owner is None:
        return frozenset()
    every = [one for one in facts.classes.values() if one.settled is None]
    heirs = [one for one in every if owner in one.lineage()]
    related = {id(base) for one in (owner, *heirs) for base in one.lineage()}
    return frozenset(id(one.node) for one in every if id(one) not in related)


def is_in(facts: Facts, node: cst.CSTNode, classes: Set[int]) -> bool:
    """Whether a node stands in one of some classes, and in no other within it."""
    around = facts.tree.around(node)
    inside = next((one for one in reversed(around) if isinstance(one, cst.ClassDef)), None)
    return inside is not None and id(inside) in classes
