"""What a ModuleList that is written out has at each place: ``nn.ModuleList([attention, feed_forward])``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.facts import Facts

_CHANGING = frozenset("pop insert append extend add_module register_module".split())


def displayed(facts: Facts, value: cst.BaseExpression) -> list[k.Kind]:
    """The kinds of the entries of ``[attention, feed_forward]``; none where one is of unknown length, or may change."""
    if not isinstance(value, (cst.List, cst.Tuple)) or _are_changed(facts):
        return []
    entries = [item.value for item in value.elements if isinstance(item, cst.Element)]
    if len(entries) < len(value.elements):
        return []
    return [facts.kind(entry) for entry in entries]


def _are_changed(facts: Facts) -> bool:
    """Whether a loop changes entries of what it goes through: ``for layer in self.layers: layer[0] = other``.

    What is changed by its own name or attribute loses its places there; an entry of another container has no name.
    """
    loops = (*facts.tree.of_type(cst.For), *facts.tree.of_type(cst.CompFor))
    names = {name for loop in loops for name in syntax.names(loop.target)}
    targets = (
        *(one.target for one in facts.tree.of_type(cst.AssignTarget)),
        *(one.target for one in facts.tree.of_type(cst.Del)),
    )
    for target in targets:
        several = target.elements if isinstance(target, (cst.Tuple, cst.List)) else [target]
        for one in several:
            part = one.value if isinstance(one, cst.Element) else one
            if isinstance(part, cst.Subscript) and _is_one(part.value, names):
                return True
    return any(_changes(call, names) for call in facts.tree.of_type(cst.Call))


def _changes(call: cst.Call, names: set[str]) -> bool:
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value in _CHANGING and _is_one(call.func.value, names)
    is_setattr = isinstance(call.func, cst.Name) and call.func.value == "setattr"
    return is_setattr and bool(call.args) and _is_one(call.args[0].value, names)


def _is_one(node: cst.BaseExpression, names: set[str]) -> bool:
    return isinstance(node, cst.Name) and node.value in names
