"""Lists of a module that its forward pass puts tensors into: ``self.steps.append(x)``, ``self.last[i] = x``.

Flax finds what stands in a list that is declared as data. What any other holds under ``nnx.jit`` is only traced, and a
call later it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import PUTTING, constructing, holds_tensor, put_into
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k


def _grows(ctx: Context) -> bool:
    if not {"append", "extend", "insert"}.isdisjoint(ctx.words):
        return True
    return any(sign in ctx.source.text for sign in ("+=", ", self.", "] = ", "= ["))


_LISTS = (cst.List, cst.Tuple, cst.Call, cst.ListComp, cst.BinaryOperation)


@converts(cst.Assign, when=_grows, targets=(cst.Attribute,), values=_LISTS)
def declared(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.steps = []`` → ``self.steps = nnx.data([])``."""
    ctx, target = rw.ctx, node.targets[0].target
    owner = ctx.owner
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or owner is None:
        return None
    if owner.torch_base is None or not ctx.is_self(target.value):
        return None
    if _is_of_numbers(node.value) or _is_of_lists(node.value):
        return _of_plain(rw, node, owner, target)
    if not _is_list(node.value):
        return None
    kind = ctx.facts.kind(node.value)
    items = node.value.elements if isinstance(node.value, (cst.List, cst.Tuple)) else ()
    if items and not holds_tensor(kind) and not _is_of_nothing(node.value):
        return None
    if any(getattr(ctx.facts.kind(one.value), "role", None) for one in items):
        return None  # parameters, which torch does not register
    name = target.attr.value
    if not _is_grown(ctx, owner, name, _is_of_nothing(node.value)) or _is_shared(ctx, target, name):
        return None
    return _as_data(rw, node)


def _as_data(rw: Rewriter, node: cst.Assign) -> cst.Assign:
    rw.ctx.helpers.use("nnx")
    value = rw.visit(node.value)
    if isinstance(value, cst.Tuple) and not value.lpar:
        value = syntax.parenthesized(value)
    made = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(value)])
    return syntax.changed(node, value=made)


def _of_plain(
    rw: Rewriter, node: cst.Assign, owner: ClassInfo, target: cst.Attribute
) -> cst.Assign | None:
    """``self.losses = [0.0] * n`` of what the forward pass puts tensors into.

    Raises:
      Failure: they are lists of lists, something else may hold the list, or it is asked what stands in it.
    """
    ctx, name = rw.ctx, target.attr.value
    nested, joined = _is_of_lists(node.value), _is_joined(ctx, owner, name)
    if not joined and not _is_grown(ctx, owner, name, unknown=False, inside=nested):
        return None
    if nested or joined or _is_shared(ctx, target, name) or _is_asked(ctx, name):
        what = "a list that the constructor fills gets tensors of the forward pass"
        advice = f"begin with a list of nothing (`self.{name} = [None] * n`), and return what is collected"
        raise Failure(node, "TRC003", what, advice)
    return _as_data(rw, node)


def _is_joined(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether a method gives the attribute another list with tensors: ``self.steps = self.steps + [x]``."""
    for method in _running(ctx, owner):
        for line in ctx.facts.tree.within(method.node.body, cst.Assign):
            sides = [line.value.left, line.value.right] if _adds(line.value) else []
            listed = (side for side in sides if isinstance(side, (cst.List, cst.ListComp)))
            if any(syntax.is_own(one.target, name) for one in line.targets):
                if any(holds_tensor(ctx.kind(side)) for side in listed):
                    return True
    return False


def _running(ctx: Context, owner: ClassInfo) -> Iterator[FunctionInfo]:
    """The methods of a class and its relatives in the file that build nothing."""
    building = set(constructing(ctx, owner))
    for info in ctx.facts.classes.values():
        if owner in info.lineage() or info in owner.lineage():
            for method in info.methods.values():
                if method not in building and method.settled is None:
                    yield method


def _adds(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add)


def _is_asked(ctx: Context, name: str) -> bool:
    """Whether it is asked whether an item is a number or a tensor: under jit a number that is data is an array."""
    for call in ctx.source.index.of_type(cst.Call):
        callee = ctx.facts.callee(call)
        if callee in (
            "torch.is_tensor",
            "builtins.isinstance",
            "builtins.type",
            "builtins.hasattr",
        ):
            inside = ctx.source.index.within(call, cst.Attribute)
            if any(one.attr.value == name for one in inside):
                return True
    return False


def _is_of_numbers(value: cst.BaseExpression) -> bool:
    """``[0] * n``, ``[0.0, 0.0]``, ``[0 for _ in …]``, ``list(range(n))``."""
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.operator, cst.Multiply) and _is_of_numbers(value.left)
    if isinstance(value, cst.ListComp):
        return isinstance(value.elt, (cst.Integer, cst.Float))
    if isinstance(value, cst.Call):
        given = value.args[0].value if len(value.args) == 1 else None
        listed = isinstance(value.func, cst.Name) and value.func.value == "list"
        counted = isinstance(given, cst.Call) and isinstance(given.func, cst.Name)
        return listed and counted and given.func.value == "range"  # type: ignore[union-attr]
    items = [one.value for one in value.elements] if isinstance(value, cst.List) else []
    return bool(items) and all(isinstance(one, (cst.Integer, cst.Float)) for one in items)


def _is_of_lists(value: cst.BaseExpression) -> bool:
    """``[[] for _ in range(n)]``, ``[[0, 0], [0, 0]]``, ``[[]] * n``."""
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.operator, cst.Multiply) and _is_of_lists(value.left)
    if isinstance(value, cst.ListComp):
        return isinstance(value.elt, (cst.List, cst.ListComp, cst.BinaryOperation)) and (
            not isinstance(value.elt, cst.BinaryOperation) or _is_of_numbers(value.elt)
        )
    items = [one.value for one in value.elements] if isinstance(value, cst.List) else []
    return bool(items) and all(isinstance(one, cst.List) for one in items)


def _is_shared(ctx: Context, target: cst.Attribute, name: str) -> bool:
    """Whether something else may hold the list: it would go on holding the one that jit has taken apart."""
    tree = ctx.facts.tree
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != name or node is target:
            continue
        around = tree.around(node) if tree.has(node) else ()
        if any(isinstance(one, cst.Lambda) for one in around):
            return True
        above, outer = (*reversed(around), None, None)[:2]
        if isinstance(above, cst.Arg) and isinstance(outer, cst.Call):
            called = ctx.facts.callee(outer) or ""
            if not called.startswith(("torch.", "builtins.")):
                return True
        elif not isinstance(above, _LOOKING) and not _is_taken(around):
            return True
    return False


def _is_taken(around: Sequence[cst.CSTNode]) -> bool:
    """``last, self.steps = self.steps, []``: a local name for the list that was."""
    match around:
        case [*_, cst.AssignTarget(), cst.Tuple(), cst.Element()]:
            return True
        case [*_, cst.Assign() as line, cst.Tuple() as value, cst.Element() as part]:
            to = line.targets[0].target
            place = list(value.elements).index(part)
            if isinstance(to, cst.Tuple) and len(to.elements) == len(value.elements):
                return isinstance(to.elements[place].value, cst.Name)
    return False


_LOOKING = (
    *(cst.Attribute, cst.Subscript, cst.For, cst.CompFor, cst.AssignTarget, cst.AugAssign),
    *(cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation, cst.Comparison),
    *(cst.ComparisonTarget, cst.If, cst.While, cst.Assert, cst.Del),
)
"""What keeps no list that stands there."""


def _is_list(value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Call):
        empty = isinstance(value.func, cst.Name) and value.func.value in ("list", "tuple")
        return empty and not value.args
    return isinstance(value, (cst.List, cst.Tuple)) or _is_of_nothing(value)


def _is_of_nothing(value: cst.BaseExpression) -> bool:
    """``[None, None]``, ``[None] * n``, ``[None for _ in …]``: places for what is to come."""
    if isinstance(value, cst.BinaryOperation):
        return isinstance(value.operator, cst.Multiply) and _is_of_nothing(value.left)
    if isinstance(value, cst.ListComp):
        return isinstance(value.elt, cst.Name) and value.elt.value == "None"
    elements = value.elements if isinstance(value, cst.List) else ()
    items = [one.value for one in elements]
    return bool(items) and all(isinstance(i, cst.Name) and i.value == "None" for i in items)


def _is_grown(
    ctx: Context, owner: ClassInfo, name: str, unknown: bool, inside: bool = False
) -> bool:
    """Whether a method that builds nothing puts a tensor into the list or tuple ``self.name``.

    ``unknown``: or what may be one, as it is of no known kind. ``inside``: or into a list within it.
    """
    return any(
        _puts_tensor(ctx, node, name, unknown, inside)
        for method in _running(ctx, owner)
        for node in ctx.facts.tree.within(method.node.body, *PUTTING)
    )


def _puts_tensor(
    ctx: Context, node: cst.CSTNode, name: str, unknown: bool, inside: bool = False
) -> bool:
    found = put_into(node)
    if found is not None:
        held, kind = found[0], ctx.kind(found[1])
        if inside and isinstance(held, cst.Subscript):
            held = held.value
        return syntax.is_own(held, name) and (
            holds_tensor(kind) or (unknown and isinstance(kind, k.Unknown))
        )
    if isinstance(node, cst.Assign):
        return _takes_apart(ctx, node, name)
    if isinstance(node, cst.AugAssign):
        held, value = node.target, node.value
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        if node.func.attr.value != "extend":
            return False
        held, value = node.func.value, node.args[0].value
    else:
        return False
    kind = ctx.kind(value)
    several = isinstance(kind, (k.Sequence, k.Tuple))
    return syntax.is_own(held, name) and several and holds_tensor(kind)


def _takes_apart(ctx: Context, node: cst.Assign, name: str) -> bool:
    """``last, self.steps = self.steps, [x]``."""
    target, value = node.targets[0].target, node.value
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return False
    return any(
        syntax.is_own(one.value, name)
        and isinstance(other.value, (cst.List, cst.Tuple))
        and holds_tensor(ctx.kind(other.value))
        for one, other in zip(target.elements, value.elements, strict=False)
    )
