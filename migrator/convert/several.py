"""Tensors that certainly have an axis: an index by them copies, where one by a tensor without axes makes a view."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context

_MAKING = frozenset(
    "arange randperm linspace nonzero argwhere multinomial argsort tril_indices triu_indices bincount unique "
    "repeat_interleave stack cat concat concatenate".split()
)
"""Functions and methods whose result has an axis whatever they are given."""
_OF_VALUES = frozenset("tensor as_tensor LongTensor IntTensor array asarray".split())
_SAME = frozenset(
    "long int to clone contiguous detach cpu cuda type flip roll unique sort clamp".split()
)
"""Methods whose result has as many axes as what they are asked of."""
_FLAT = frozenset("view reshape flatten".split())
_PAIRS = frozenset("topk sort where".split())
_SHOWN = (cst.List, cst.ListComp)
_DEEP = 6


def is_several(ctx: Context, node: cst.BaseExpression, deep: int = _DEEP) -> bool:
    """Whether a tensor surely has an axis, by how it is made in the function, or what a buffer is registered with."""
    if not deep:
        return False
    if isinstance(node, cst.Name):
        values = _given(ctx, node)
        return bool(values) and all(is_several(ctx, one, deep - 1) for one in values)
    if isinstance(node, cst.BinaryOperation):
        return is_several(ctx, node.left, deep - 1) or is_several(ctx, node.right, deep - 1)
    if isinstance(node, cst.Attribute):
        if node.attr.value == "indices" and isinstance(node.value, cst.Call):
            return _name(node.value) in ("topk", "sort")
        return _is_buffer(ctx, node, deep)
    if isinstance(node, cst.Subscript):
        of = node.value
        return isinstance(of, cst.Call) and _name(of) in _PAIRS
    if not isinstance(node, cst.Call):
        return False
    name = _name(node)
    if name in _MAKING:
        return True
    if name in _OF_VALUES and node.args:
        first = node.args[0].value
        called = isinstance(first, cst.Call) and syntax.code(first.func) in ("range", "list")
        return isinstance(first, _SHOWN) or called
    if not isinstance(node.func, cst.Attribute):
        return False
    if name in _FLAT and (name == "flatten" or _is_flat(node)):
        return True
    return name in _SAME and is_several(ctx, node.func.value, deep - 1)


def _name(call: cst.Call) -> str:
    func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return func.value if isinstance(func, cst.Name) else ""


def _is_flat(call: cst.Call) -> bool:
    """``.view(-1)``, ``.reshape(n, -1)``."""
    return any(
        isinstance(one.value, cst.UnaryOperation) and syntax.code(one.value) == "-1"
        for one in call.args
    )


def _given(ctx: Context, name: cst.Name) -> list[cst.BaseExpression]:
    """All that a local name is given; nothing where it may be something else."""
    tree = ctx.facts.tree
    around = tree.around(name) if tree.has(name) else []
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    if function is None or name.value in syntax.parameters(function):
        return []
    found: list[cst.BaseExpression] = []
    for one in tree.within(function.body, cst.Name):
        if one.value != name.value:
            continue
        above = tree.parent(one)
        if isinstance(above, cst.AssignTarget):
            line = tree.parent(above)
            if not isinstance(line, cst.Assign):
                return []
            found.append(line.value)
        elif isinstance(above, (cst.Element, cst.NamedExpr, cst.For, cst.CompFor, cst.AugAssign)):
            if getattr(above, "target", None) is one or _is_target(ctx, above):
                return []
    return found


def _is_target(ctx: Context, element: cst.CSTNode) -> bool:
    """Whether an element of a tuple is one that an assignment or a loop binds."""
    if not isinstance(element, cst.Element):
        return False
    around = ctx.facts.tree.around(element)
    return any(isinstance(one, (cst.AssignTarget, cst.For, cst.CompFor)) for one in around[-3:])


def _is_buffer(ctx: Context, node: cst.Attribute, deep: int) -> bool:
    """Whether the class registers such a buffer with what has an axis, and nothing else."""
    tree, name = ctx.facts.tree, node.attr.value
    if not isinstance(node.value, cst.Name) or node.value.value != "self" or not tree.has(node):
        return False
    around = [one for one in tree.around(node) if isinstance(one, cst.ClassDef)]
    node_of = around[-1] if around else None
    own = next((one for one in ctx.facts.classes.values() if one.node is node_of), None)
    if node_of is None or own is None or len(own.lineage()) > 1:
        return False
    made: list[cst.BaseExpression] = []
    for one in tree.within(own.node, cst.Call, cst.AssignTarget):
        if isinstance(one, cst.AssignTarget):
            if isinstance(one.target, cst.Attribute) and one.target.attr.value == name:
                return False
        elif _name(one) == "register_buffer" and len(one.args) > 1:
            if syntax.code(one.args[0].value).strip("\"'") == name:
                made.append(one.args[1].value)
    return bool(made) and all(is_several(ctx, one, deep - 1) for one in made)
