"""``ptr = int(self.queue_ptr)`` and ``self.queue[:, ptr:ptr + n] = keys``: a queue that is written to from where it stands.

The place stays an array, and what is written has a size that is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_WHOLE = (cst.Add, cst.Subtract, cst.Multiply, cst.Modulo, cst.FloorDivide)
_STEPS = (cst.AddAssign, cst.SubtractAssign, cst.ModuloAssign)


@dataclass
class Pointers:
    """The places in a file that stay arrays.

    Attributes:
      taken: ``int(self.queue_ptr)``, and the tensor.
      writes: the target of a write from such a place on → the axis, where it starts, and how long it is.
    """

    taken: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    writes: dict[cst.CSTNode, tuple[int, cst.BaseExpression, cst.BaseExpression]] = field(
        default_factory=dict
    )


def pointers(ctx: Context) -> Pointers:
    """The places of a file, looked for once; what was said against taking them out is taken back."""
    if ctx.pointers is None:
        ctx.pointers = Pointers()
        tree = ctx.source.index
        for node in [n for n, (rule, _, _) in ctx.blocked.items() if rule == "DYN004"]:
            if tree.has(node):
                _note(ctx, node, ctx.pointers)
    found: Pointers = ctx.pointers
    return found


def _note(ctx: Context, node: cst.CSTNode, found: Pointers) -> None:
    tree, tensor = ctx.source.index, _taken_out(ctx, node)
    assign = tree.around(node)[-1]
    if tensor is None or not isinstance(assign, cst.Assign) or assign.value is not node:
        return
    target = assign.targets[0].target
    function = next(
        (n for n in reversed(tree.around(node)) if isinstance(n, cst.FunctionDef)), None
    )
    if len(assign.targets) != 1 or not isinstance(target, cst.Name) or function is None:
        return
    writes: dict[cst.CSTNode, tuple[int, cst.BaseExpression, cst.BaseExpression]] = {}
    for name in tree.within(function, cst.Name):
        if name.value != target.value or name is target or _is_label(ctx, name):
            continue
        if not _is_fine(ctx, name, writes):
            return
    if writes:
        found.taken[node] = tensor
        found.writes |= writes
        del ctx.blocked[node]


def _taken_out(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The tensor of whole numbers that ``int(x)``, ``x.item()`` and ``int(x.item())`` take the only one out of."""
    if not isinstance(node, cst.Call):
        return None
    if ctx.facts.callee(node) == "builtins.int" and len(node.args) == 1:
        inner = node.args[0].value
        return _taken_out(ctx, inner) or _of_whole_numbers(ctx, inner)
    if ctx.facts.callee(node) == "Tensor.item" and isinstance(node.func, cst.Attribute):
        return _of_whole_numbers(ctx, node.func.value)
    return None


def _of_whole_numbers(ctx: Context, node: cst.BaseExpression) -> cst.BaseExpression | None:
    kind = ctx.kind(node)
    return node if isinstance(kind, k.Tensor) and kind.dtype == "int" else None


def _is_label(ctx: Context, name: cst.Name) -> bool:
    parent = ctx.source.index.parent(name)
    if isinstance(parent, cst.Attribute):
        return parent.attr is name
    return isinstance(parent, (cst.Arg, cst.Param)) and getattr(parent, "keyword", None) is name


def _is_fine(
    ctx: Context,
    name: cst.Name,
    writes: dict[cst.CSTNode, tuple[int, cst.BaseExpression, cst.BaseExpression]],
) -> bool:
    """Whether a use of the place is arithmetic that ends in a name or a tensor, or bounds a slice that is written."""
    child: cst.CSTNode = name
    around = list(ctx.source.index.around(name))
    while isinstance(node := around.pop(), cst.BinaryOperation):
        other = node.right if node.left is child else node.left
        number = isinstance(ctx.kind(other), k.Unknown) or _is_whole(ctx, other, name.value)
        if not isinstance(node.operator, _WHOLE) or not number:
            return False
        child = node
    if isinstance(node, cst.Slice):
        return _bounds(ctx, node, around, name.value, writes)
    if isinstance(node, cst.AssignTarget):
        return child is name and _is_moved(ctx, around[-1], name.value)
    if isinstance(node, cst.AugAssign):
        moved = isinstance(node.target, cst.Name) and node.target.value == name.value
        return moved and isinstance(node.operator, _STEPS)
    if isinstance(node, cst.Assign) and len(node.targets) == 1 and node.value is child:
        into = node.targets[0].target
        if isinstance(into, cst.Name):
            return into.value == name.value
        held = into.value if isinstance(into, cst.Subscript) else None
        return held is not None and isinstance(ctx.kind(held), k.Tensor)
    return False


def _is_whole(ctx: Context, node: cst.BaseExpression, name: str) -> bool:
    """A whole number, with or without the place in it."""
    if isinstance(node, cst.BinaryOperation):
        return _is_whole(ctx, node.left, name) and _is_whole(ctx, node.right, name)
    return k.scalar_type(ctx.kind(node)) == "int"


def _is_moved(ctx: Context, node: cst.CSTNode, name: str) -> bool:
    """``ptr = (ptr + n) % size``."""
    return (
        isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and isinstance(node.value, cst.BinaryOperation)
        and name in syntax.names(node.value)
    )


def _bounds(
    ctx: Context,
    node: cst.Slice,
    around: list[Any],
    name: str,
    writes: dict[cst.CSTNode, tuple[int, cst.BaseExpression, cst.BaseExpression]],
) -> bool:
    """``x[:, ptr:ptr + n] = …``: n is a size, and no other axis is cut."""
    *_, statement, aim, target, element = [None] * 4 + around
    upper = node.upper
    if not isinstance(aim, cst.AssignTarget) or not isinstance(target, cst.Subscript):
        return False
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1 or node.step:
        return False
    starts = isinstance(node.lower, cst.Name) and node.lower.value == name
    if not starts or not isinstance(upper, cst.BinaryOperation):
        return False
    ends = isinstance(upper.left, cst.Name) and upper.left.value == name
    if not ends or not isinstance(upper.operator, cst.Add) or name in syntax.names(upper.right):
        return False
    if not isinstance(ctx.kind(target.value), k.Tensor) or not _is_whole(ctx, upper.right, name):
        return False
    for one in target.slice:
        cut = one.slice
        if one is not element and not (
            isinstance(cut, cst.Slice) and not (cut.lower or cut.upper or cut.step)
        ):
            return False
    place = next(i for i, one in enumerate(target.slice) if one is element)
    assert node.lower is not None
    writes[target] = (place, node.lower, upper.right)
    return True


@converts(cst.Call, when=lambda ctx: bool(pointers(ctx).taken))
def taken_out(rw: Rewriter, node: cst.Call) -> Any:
    """``int(self.queue_ptr)`` → its only element, which stays an array."""
    tensor = pointers(rw.ctx).taken.get(node)
    if tensor is None:
        return None
    kind = rw.ctx.kind(tensor)
    made = rw.visit(tensor)
    if isinstance(kind, k.Tensor) and kind.rank == 0:
        return made
    text = "x[0]" if isinstance(kind, k.Tensor) and kind.rank == 1 else "x.reshape(())"
    return syntax.substitute(syntax.parse(text), {"x": made})


def from_pointer(rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression) -> cst.Call | None:
    """What ``x`` becomes by such a write; None for any other."""
    found = pointers(rw.ctx).writes.get(target)
    if found is None:
        return None
    axis, start, size = found
    name = rw.ctx.helpers.need(module_file("rules.compat.masks"), "set_slice")
    args = [rw.visit(target.value), value, rw.visit(start), rw.visit(size), syntax.parse(str(axis))]
    call = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(one) for one in args[:4]])
    return syntax.add_keyword(call, "axis", args[4])
