"""``self.h, self.c = cell(x)``: several targets of which some are Variables in the output, each written in turn."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_SEQUENCES = (cst.Tuple, cst.List)


@converts(cst.Assign)
def written_in_turn(rw: Rewriter, node: cst.Assign) -> Any:
    """``h, c = cell(x)``, then what ``self.h = h`` and ``self.c = c`` become, in the order of Python."""
    if len(node.targets) == 1 and not isinstance(node.targets[0].target, _SEQUENCES):
        return None
    places = [one.target for one in node.targets]
    if not any(_holds_variable(rw, place) for place in places):
        return None
    later: list[cst.Assign] = []
    if len(places) > 1:
        return _chained(rw, node)
    target = _named(rw, places[0], later)
    made = rw.visit(syntax.changed(node, targets=[cst.AssignTarget(target)]))
    statements = made if isinstance(made, list) else [made]
    for one in later:
        new = rw.visit(one)
        statements = [*statements, *(new if isinstance(new, list) else [new])]
    return statements


def _chained(rw: Rewriter, node: cst.Assign) -> list[Any]:
    """``self.a = self.b = v`` → ``a = v`` and one assignment each, from the left as Python does."""
    first: list[cst.Assign] = []
    value = node.value
    if not isinstance(value, cst.Name):
        value = cst.Name(rw.ctx.unused("value"))
        rw.ctx.facts.kinds[value] = rw.ctx.facts.kind(node.value)
        first = [cst.Assign([cst.AssignTarget(value)], node.value)]
    found: list[Any] = []
    for one in (*first, *(cst.Assign([target], value) for target in node.targets)):
        made = rw.visit(one)
        found.extend(made if isinstance(made, list) else [made])
    return found


def _holds_variable(rw: Rewriter, target: cst.BaseExpression) -> bool:
    if isinstance(target, _SEQUENCES):
        return any(_holds_variable(rw, element.value) for element in target.elements)
    return isinstance(target, cst.Attribute) and targets.is_variable(rw.ctx, target)


def _named(rw: Rewriter, target: Any, later: list[cst.Assign]) -> Any:
    """The target with names of its own in the place of Variables; what they are given to is added to ``later``."""
    if isinstance(target, _SEQUENCES):
        elements = []
        for element in target.elements:
            elements.append(syntax.changed(element, value=_named(rw, element.value, later)))
        return syntax.changed(target, elements=elements)
    if not _holds_variable(rw, target):
        return target
    assert isinstance(target, cst.Attribute)
    kind = rw.ctx.kind(target)
    name = cst.Name(rw.ctx.unused(target.attr.value))
    rw.ctx.facts.kinds[name] = k.Tensor(dtype=kind.dtype) if isinstance(kind, k.Tensor) else kind
    later.append(cst.Assign([cst.AssignTarget(target)], name))
    return name
