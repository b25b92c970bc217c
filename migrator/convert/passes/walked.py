"""Lists of parameters that a loop goes through: ``for w in [self.a, self.b]: nn.init.ones_(w)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.listed_parameters import check_walked, given
from migrator.convert.rewriter import Rewriter, converts


@converts(cst.List, cst.Tuple)
def variables(rw: Rewriter, node: cst.List | cst.Tuple) -> Any:
    """The Variables themselves, which the loop's body reads and writes with ``[...]``."""
    if not _only_walked(rw.ctx, node) or not _are_variables(rw.ctx, node):
        return None
    elements = [
        syntax.changed(e, value=targets.variable_reference(rw, e.value)[0]) for e in node.elements
    ]
    return syntax.changed(node, elements=elements)


def check_written(ctx: Context, name: cst.Name) -> None:
    """Raise a Failure where a loop's target is written and the loop does not go through the Variables."""
    if ctx.frame is None:
        return
    body = ctx.frame.info.node.body
    for loop in ctx.facts.tree.within(body, cst.For):
        if name.value not in syntax.names(loop.target):
            continue
        check_walked(ctx, loop)
        values = _literal(ctx, body, loop.iter)
        if (values is None and not _are_values(ctx, loop.iter)) or (
            values is not None
            and isinstance(loop.target, cst.Name)
            and _only_walked(ctx, values)
            and _are_variables(ctx, values)
        ):
            continue
        raise Failure(
            name,
            "MUT001",
            "a parameter is written as an element of a list",
            "write to each parameter by its own name",
        )


def _are_values(ctx: Context, node: cst.BaseExpression) -> bool:
    """``ws`` of ``ws = [m.weight for m in self.children()]``, which the port fills with the values of parameters."""
    named = [given(ctx, one) for one in ctx.facts.tree.within(node, cst.Name)]
    for made in (node, *named):
        if isinstance(made, (cst.ListComp, cst.GeneratorExp, cst.SetComp, cst.DictComp)):
            element = made.value if isinstance(made, cst.DictComp) else made.elt
            held = ctx.facts.tree.within(element, cst.Attribute)
            if any(targets.is_variable(ctx, one) for one in held):
                return True
    return False


def _are_variables(ctx: Context, node: cst.List | cst.Tuple) -> bool:
    """Whether all elements are parameters that stand in the output as they do in torch."""
    for element in node.elements:
        value = element.value
        if not isinstance(value, cst.Attribute) or not targets.is_variable(ctx, value):
            return False
        weight = targets.layer_weight(ctx, value)
        if weight is not None and weight[1]:
            return False
    return bool(node.elements)


def _only_walked(ctx: Context, node: cst.List | cst.Tuple) -> bool:
    """Whether loops go through a list, whose elements they call by one name, and nothing else reads it."""
    if not ctx.facts.tree.has(node):
        return False
    parent = ctx.facts.tree.around(node)[-1]
    if isinstance(parent, cst.For):
        return parent.iter is node and isinstance(parent.target, cst.Name)
    if not isinstance(parent, cst.Assign) or ctx.frame is None or len(parent.targets) != 1:
        return False
    target = parent.targets[0].target
    if not isinstance(target, cst.Name):
        return False
    body = ctx.frame.info.node.body
    names = ctx.facts.tree.within(body, cst.Name)
    uses = [n for n in names if n.value == target.value and n is not target]
    around = [(n, ctx.facts.tree.around(n)[-1]) for n in uses]
    return all(
        isinstance(loop, cst.For) and loop.iter is use and isinstance(loop.target, cst.Name)
        for use, loop in around
    )


def _literal(
    ctx: Context, body: cst.CSTNode, node: cst.BaseExpression
) -> cst.List | cst.Tuple | None:
    """A list that is written out, or the one that a local name was given; also one in ``zip`` or ``enumerate``."""
    if isinstance(node, cst.Call):
        found = [_literal(ctx, body, item.value) for item in node.args]
        return next((one for one in found if one is not None), None)
    if isinstance(node, cst.Name):
        for item in ctx.facts.tree.within(body, cst.Assign):
            if _is(item.targets[0].target, node.value):
                return item.value if isinstance(item.value, (cst.List, cst.Tuple)) else None
    return node if isinstance(node, (cst.List, cst.Tuple)) else None


def _is(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name
