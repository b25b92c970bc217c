"""Tensors that certainly have an axis: an index by them copies, where one by a tensor without axes makes a view."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

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
_SIZED = frozenset("view reshape repeat expand tile".split())
"""Methods that are told sizes, one for each axis."""
_PAIRS = frozenset("topk sort".split())
_SHOWN = (cst.List, cst.ListComp)
_DEEP = 6


def is_several(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a tensor surely has an axis: by how it is made in the function, by what is asked of it there, or as a buffer."""
    return _axes(ctx, node, _DEEP) > 0


def _axes(ctx: Context, node: cst.BaseExpression, deep: int) -> int:
    """So many axes a tensor has at least."""
    if not deep:
        return 0
    kind = ctx.facts.kind(node)
    if isinstance(kind, k.Tensor) and kind.rank is not None:
        return kind.rank
    if isinstance(node, cst.Name):
        values = _given(ctx, node)
        made = min((_axes(ctx, one, deep - 1) for one in values), default=0)
        return max(made, _asked(ctx, node))
    if isinstance(node, cst.BinaryOperation):
        return max(_axes(ctx, node.left, deep - 1), _axes(ctx, node.right, deep - 1))
    if isinstance(node, cst.Attribute):
        if node.attr.value == "indices" and isinstance(node.value, cst.Call):
            return int(_name(node.value) in ("topk", "sort"))
        return int(_is_buffer(ctx, node, deep))
    if isinstance(node, cst.Subscript):
        if isinstance(node.value, cst.Call) and _gives_several(node.value):
            return 1
        taken = sum(not isinstance(one.slice, cst.Slice) for one in node.slice)
        return max(_axes(ctx, node.value, deep - 1) - taken, 0)
    if not isinstance(node, cst.Call):
        return 0
    name = _name(node)
    if name in _MAKING:
        return 1
    if name in _OF_VALUES and node.args:
        first = node.args[0].value
        called = isinstance(first, cst.Call) and syntax.code(first.func) in ("range", "list")
        return int(isinstance(first, _SHOWN) or called)
    if not isinstance(node.func, cst.Attribute):
        return 0
    if name in _FLAT and (name == "flatten" or _is_flat(node)):
        return 1
    if name in _SIZED and (axes := _sizes(ctx, node)):
        return axes
    return _axes(ctx, node.func.value, deep - 1) if name in _SAME else 0


def _sizes(ctx: Context, call: cst.Call) -> int:
    """So many axes the sizes tell of: ``.view(n, 1)``, ``.repeat(sizes)`` of a list of which one has a place.

    ``sizes[0] = 1`` raises for an empty list."""
    given = [one.value for one in call.args if one.keyword is None and not one.star]
    if len(given) < len(call.args) or not given:
        return 0
    if len(given) > 1 or k.scalar_type(ctx.facts.kind(given[0])) == "int":
        return len(given)
    if isinstance(given[0], (cst.List, cst.Tuple)):
        return sum(isinstance(one, cst.Element) for one in given[0].elements)
    tree, function = ctx.facts.tree, _function(ctx, given[0])
    if not isinstance(given[0], cst.Name) or function is None:
        return 0
    block = [line for line in function.body.body if isinstance(line, cst.SimpleStatementLine)]
    for one in tree.within(function.body, cst.AssignTarget):
        match one.target:
            case cst.Subscript(cst.Name(name), [cst.SubscriptElement(cst.Index(index))]) if (
                name == given[0].value and any(tree.holds(line, one) for line in block)
            ):
                if found := _place(index):
                    return found
    return 0


def _function(ctx: Context, node: cst.CSTNode) -> cst.FunctionDef | None:
    """The function that a node stands in."""
    around = ctx.facts.tree.around(node) if ctx.facts.tree.has(node) else []
    return next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)


def _gives_several(call: cst.Call) -> bool:
    """``topk(x, n)``, ``where(mask)``: not ``where(mask, a, b)``, which is one tensor."""
    name = _name(call)
    found = name == "where" and len(call.args) == 1 and not call.args[0].star
    return found or name in _PAIRS


def _asked(ctx: Context, name: cst.Name) -> int:
    """So many axes an argument has for what a function asks of it: ``tags.size(1)``, ``n, b = tags.shape``, ``tags[:, 0]``."""
    tree, function = ctx.facts.tree, _function(ctx, name)
    if function is None or not all(
        _is_same(name.value, one) for one in _bound(ctx, function, name)
    ):
        return 0
    found = 0
    inner = tree.within(function.body, cst.Lambda, cst.FunctionDef)
    for one in tree.within(function.body, cst.Name):
        if one.value != name.value or any(tree.holds(other, one) for other in inner):
            continue
        above = tree.parent(one)
        if isinstance(above, cst.Subscript) and above.value is one:
            found = max(found, len([e for e in above.slice if _takes_axis(e)]))
        elif isinstance(above, cst.Arg):
            call = tree.parent(above)
            counted = isinstance(call, cst.Call) and syntax.code(call.func) == "len"
            found = max(found, int(counted))
        elif isinstance(above, cst.Attribute) and above.value is one:
            found = max(found, _of_shape(ctx, above))
    return found


def _takes_axis(element: cst.SubscriptElement) -> bool:
    """``0`` and ``:`` of ``tags[:, 0]``, and neither ``None`` nor ``...``."""
    index = element.slice
    return isinstance(index, cst.Slice) or (
        isinstance(index, cst.Index)
        and not isinstance(index.value, cst.Ellipsis)
        and syntax.code(index.value) != "None"
    )


def _of_shape(ctx: Context, asked: cst.Attribute) -> int:
    """So many axes tell ``.size(1)``, ``.shape[1]``, ``n, b = x.shape``, ``.dim() == 2`` in an assertion."""
    tree, name = ctx.facts.tree, asked.attr.value
    node: cst.CSTNode = asked
    above = tree.parent(node)
    if isinstance(above, cst.Call) and above.func is asked and name in ("size", "dim"):
        if name == "size" and len(above.args) == 1:
            return _place(above.args[0].value)
        if above.args:
            return 0
        node, above = above, tree.parent(above)
    elif name not in ("shape", "ndim"):
        return 0
    if isinstance(above, cst.Subscript) and len(above.slice) == 1:
        index = above.slice[0].slice
        return _place(index.value) if isinstance(index, cst.Index) else 0
    if isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Tuple):
        elements = above.targets[0].target.elements
        return len([one for one in elements if not isinstance(one, cst.StarredElement)])
    if isinstance(above, cst.Comparison) and name in ("dim", "ndim") and above.left is node:
        only = above.comparisons[0]
        held = any(isinstance(one, cst.Assert) for one in tree.around(above))
        if (
            held
            and isinstance(only.operator, cst.Equal)
            and isinstance(only.comparator, cst.Integer)
        ):
            return int(only.comparator.value)
    return 0


def _place(index: cst.BaseExpression) -> int:
    """So many axes there are where one has a number."""
    if isinstance(index, cst.Integer):
        return int(index.value) + 1
    minus = isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.Minus)
    return int(index.expression.value) if minus and isinstance(index.expression, cst.Integer) else 0  # type: ignore[attr-defined]


def _bound(ctx: Context, function: cst.FunctionDef, name: cst.Name) -> list[cst.CSTNode]:
    """What a function gives a name anew."""
    found: list[cst.CSTNode] = []
    nodes = ctx.facts.tree.within(
        function.body, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.CompFor
    )
    for one in nodes:
        places = [to.target for to in one.targets] if isinstance(one, cst.Assign) else [one.target]
        if any(name.value in _targets(to) for to in places):
            found.append(one)
    return found


def _targets(target: cst.BaseExpression) -> set[str]:
    """The names that an assignment binds: none of ``tags[0] = 1``."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return {name for one in target.elements for name in _targets(one.value)}
    return {target.value} if isinstance(target, cst.Name) else set()


def _is_same(name: str, line: cst.CSTNode) -> bool:
    """``tags = tags.transpose(0, 1)``, which has as many axes."""
    value = line.value if isinstance(line, cst.Assign) else None
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value not in (*_SAME, "transpose", "permute", "t"):
            return False
        value = value.func.value
    return isinstance(value, cst.Name) and value.value == name


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
    tree, function = ctx.facts.tree, _function(ctx, name)
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
    return bool(made) and all(_axes(ctx, one, deep - 1) for one in made)
