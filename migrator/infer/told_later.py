"""Containers of which more is known once other functions have been walked, or their lists have been gathered."""

from __future__ import annotations

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import ClassInfo, Facts

_SETTING = frozenset("setattr __setattr__ add_module register_module".split())


def begins_clearly(facts: Facts, info: ClassInfo, name: str, kind: k.Kind) -> bool:
    """Whether a container that may have begun in place does not: ``conv`` of ``[conv(4, 4), nn.ReLU(True)]`` was unknown.

    Only where one line of the file gives the attribute its value is the new kind that of the same container.
    """
    known = info.attributes.get(name)
    if not isinstance(known, k.Module) or not isinstance(kind, k.Module) or known.cls != kind.cls:
        return False
    if dict(known.args).get("inplace") != "maybe" or k.in_place(kind) is not False:
        return False
    if tuple(one for one in known.args if one[0] != "inplace") != kind.args:
        return False
    return _is_given_once(facts, info, name)


def gathers(listed: k.Kind, kind: k.Kind) -> bool:
    """Whether a list may have been gathered for a container, and is none of numbers in its place."""
    container = isinstance(kind, k.Module) and kind.item is not None
    return container and isinstance(listed, k.Sequence) and k.scalar_type(listed.item) is None


def _is_given_once(facts: Facts, info: ClassInfo, name: str) -> bool:
    if any(_word(call.func) in _SETTING for call in facts.tree.of_type(cst.Call)):
        return False
    others = [
        one.node
        for one in facts.classes.values()
        if one not in info.lineage() and info not in one.lineage() and facts.tree.has(one.node)
    ]
    given = 0
    for one in facts.tree.of_type(cst.Attribute):
        if one.attr.value != name:
            continue
        above = facts.tree.parent(one)
        if not isinstance(above, _BINDING) or getattr(above, "target", one) is not one:
            continue
        own = isinstance(one.value, cst.Name) and one.value.value == "self"
        given += not (own and any(facts.tree.holds(other, one) for other in others))
    return given == 1


def _word(func: cst.BaseExpression) -> str:
    if isinstance(func, cst.Attribute):
        return func.attr.value
    return func.value if isinstance(func, cst.Name) else ""


_BINDING = (
    *(cst.AssignTarget, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For),
    *(cst.Element, cst.WithItem, cst.CompFor),
)
"""What may give an attribute a value; an entry of a display is taken for one of a target."""
