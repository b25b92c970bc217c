"""Whether the axis that a tensor is split along certainly divides: queries, keys and values of ``nn.Linear(d, 3 * d)``."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import ClassInfo
from migrator.infer import kinds as k

_FEATURES = {
    "torch.nn.Linear": ("out_features", -1),
    "torch.nn.Conv1d": ("out_channels", -2),
    "torch.nn.Conv2d": ("out_channels", -3),
    "torch.nn.Conv3d": ("out_channels", -4),
}
"""Layers, the argument that says how much they give, and the axis of it."""
_SAME = frozenset("float half bfloat16 to contiguous clone detach type_as double".split())
"""Methods that change no size."""
_ELEMENTWISE = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide)


def divides(ctx: Context, node: cst.Call, count: int) -> bool:
    """Whether ``x.chunk(count, dim)`` or ``torch.chunk(x, count, dim)`` certainly gives equal pieces."""
    args = list(node.args)
    named = {a.keyword.value: a.value for a in args if a.keyword is not None}
    plain = [a.value for a in args if a.keyword is None]
    method = isinstance(node.func, cst.Attribute) and isinstance(
        ctx.kind(node.func.value), k.Tensor
    )
    if method and isinstance(node.func, cst.Attribute):
        plain.insert(0, node.func.value)
    if not plain or any(a.star for a in args):
        return False
    axis = named.get("dim", plain[2] if len(plain) > 2 else None)
    dim = ctx.kind(axis) if axis is not None else k.Const(0)
    if not isinstance(dim, k.Const) or not isinstance(dim.value, int):
        return False
    return _of_layer(ctx, plain[0], dim.value, count)


def _of_layer(ctx: Context, node: cst.BaseExpression, dim: int, count: int, depth: int = 5) -> bool:
    """Whether a tensor is what a layer gives, or computed with it, whose size along the axis divides."""
    if depth == 0:
        return False
    if isinstance(node, cst.Name):
        value = _only_value(ctx, node.value)
        return value is not None and _of_layer(ctx, value, dim, count, depth - 1)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _ELEMENTWISE):
        if not all(isinstance(ctx.kind(side), k.Tensor) for side in (node.left, node.right)):
            return False
        return all(_of_layer(ctx, s, dim, count, depth - 1) for s in (node.left, node.right))
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    if node.func.attr.value in _SAME and isinstance(ctx.kind(node.func.value), k.Tensor):
        return _of_layer(ctx, node.func.value, dim, count, depth - 1)
    if ctx.owner is None or not ctx.is_self(node.func.value):
        return False
    made = _made(ctx, ctx.owner, node.func.attr.value)
    return bool(made) and all(_gives(ctx, one, node, dim, count) for one in made)


def _made(ctx: Context, owner: ClassInfo, name: str) -> list[cst.BaseExpression]:
    """What the class, and those that derive from it, assign to ``self.name``."""
    classes = [
        c for c in ctx.facts.classes.values() if c in owner.lineage() or owner in c.lineage()
    ]
    found = []
    for info in classes:
        if info.settled is not None:
            return []
        for line in ctx.facts.tree.within(info.node, cst.Assign):
            for one in line.targets:
                target = one.target
                if isinstance(target, cst.Attribute) and target.attr.value == name:
                    found.append(line.value)
    return found


def _gives(ctx: Context, made: cst.BaseExpression, call: cst.Call, dim: int, count: int) -> bool:
    """Whether a layer as it is made here has a multiple of a number of features along an axis."""
    kind = ctx.facts.kind(made.func) if isinstance(made, cst.Call) else k.UNKNOWN
    if not isinstance(made, cst.Call) or not isinstance(kind, k.Class):
        return False
    argument, axis = _FEATURES.get(kind.name, ("", 0))
    result = ctx.kind(call)
    rank = result.rank if isinstance(result, k.Tensor) else None
    along = dim == axis or (rank is not None and dim == rank + axis)
    if kind.name.startswith("torch.nn.Conv"):  # (N, C, …): with a batch, as nearly always
        along = along or dim == 1
    if not along or any(a.star for a in made.args):
        return False
    plain = [a.value for a in made.args if a.keyword is None]
    named = {a.keyword.value: a.value for a in made.args if a.keyword is not None}
    size = named.get(argument, plain[1] if len(plain) > 1 else None)
    return size is not None and _is_multiple(ctx, size, count)


def _is_multiple(ctx: Context, node: cst.BaseExpression, count: int) -> bool:
    """``3 * dim``, ``heads * dim * 3``, ``12``."""
    kind = ctx.kind(node)
    if isinstance(kind, k.Const) and type(kind.value) is int:
        return kind.value % count == 0
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        whole = all(k.scalar_type(ctx.kind(s)) != "float" for s in (node.left, node.right))
        return whole and any(_is_multiple(ctx, s, count) for s in (node.left, node.right))
    return False


def _only_value(ctx: Context, name: str) -> cst.BaseExpression | None:
    """What a local name of the function is bound to, where that happens once."""
    if ctx.frame is None:
        return None
    function = ctx.frame.info.node
    if any(p.name.value == name for p in ctx.facts.tree.within(function.params, cst.Param)):
        return None
    values = []
    for target in ctx.facts.tree.within(
        function.body, cst.AssignTarget, cst.AugAssign, cst.For, cst.NamedExpr, cst.AnnAssign
    ):
        bound = [n for n in ctx.facts.tree.within(target.target, cst.Name) if n.value == name]
        if isinstance(target.target, cst.Name) and target.target.value == name:
            above = ctx.facts.tree.around(target)[-1]
            values.append(above.value if isinstance(above, cst.Assign) else None)
        elif bound and not isinstance(target.target, cst.Attribute | cst.Subscript):
            values.append(None)
    return values[0] if len(values) == 1 else None
