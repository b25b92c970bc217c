"""Buffers that are filled with values which have a gradient: ``self.memory.copy_(h)``, ``self.memory[:, :n] = h``.

In torch the gradient of what fills a buffer hangs on it from then on, as on any other tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.switches import OFF

if TYPE_CHECKING:
    from migrator.convert.context import Context

Fill = tuple[cst.BaseExpression | None, FunctionInfo | None]
"""What a buffer is filled with, None where it is not known, and the function that does it."""

_BUILDING = frozenset(["__init__", "reset_parameters", "_reset_parameters"])
_APART = frozenset(["data", "detach"])


def refilled(ctx: Context) -> frozenset[str]:
    """The names of the buffers of the file that may have a gradient, once the forward pass has filled them."""
    from migrator.convert.reentrant import is_free

    if ctx.refilled is None:
        ctx.refilled = frozenset()
        fills = {name: list(_fills(ctx, name)) for name in sorted(_buffers(ctx))}
        grown = True
        while grown:  # one buffer may be filled with another
            new = {
                name
                for name, given in fills.items()
                if not all(one is not None and is_free(ctx, one, info) for one, info in given)
            }
            grown, ctx.refilled = new != ctx.refilled, frozenset(new)
    return ctx.refilled


def may_have_gradient(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a buffer, by its own name or by another one, may have been filled with what has a gradient."""
    if isinstance(node, cst.Attribute):
        return node.attr.value in refilled(ctx)
    return bool(refilled(ctx))


def runs_without(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a node stands under ``torch.no_grad()``, and under nothing in it that keeps gradients again."""
    for around in reversed(ctx.facts.tree.around(node)):
        for item in around.items if isinstance(around, cst.With) else ():
            call = item.item
            name = ctx.facts.callee(call) if isinstance(call, cst.Call) else None
            if isinstance(call, cst.Call) and name in OFF and not call.args:
                return True
            if "grad" in (name or "") or "inference" in (name or ""):
                return False
        if isinstance(around, cst.FunctionDef) and around in ctx.facts.functions:
            if {"no_grad", "inference_mode"} & set(ctx.facts.functions[around].decorators):
                return True
    return False


def _buffers(ctx: Context) -> set[str]:
    return {
        name
        for info in ctx.facts.classes.values()
        for name, kind in info.attributes.items()
        if isinstance(value := kind.inner if isinstance(kind, k.Optional) else kind, k.Tensor)
        and value.role == "buffer"
    }


def _fills(ctx: Context, name: str) -> Iterator[Fill]:
    tree = ctx.facts.tree
    for node in tree.of_type(cst.Attribute):
        if node.attr.value == name:
            yield from _through(ctx, node)
    for call in tree.of_type(cst.Call):
        named = len(call.args) > 1 and ctx.kind(call.args[1].value) == k.Const(name)
        if not named or _info(ctx, call) is None:
            continue
        callee = ctx.facts.callee(call)
        if callee == "builtins.getattr":
            yield from _through(ctx, call)
        elif callee == "builtins.setattr" and len(call.args) == 3 and not runs_without(ctx, call):
            yield call.args[2].value, _info(ctx, call)


def _through(ctx: Context, node: cst.BaseExpression) -> Iterator[Fill]:
    """What is written to a tensor by way of an expression, or of a local name for it."""
    yield from _written(ctx, node)
    info, tree = _info(ctx, node), ctx.facts.tree
    above = tree.parent(node)
    names: list[cst.BaseExpression] = []
    if isinstance(above, cst.Assign):
        names = [one.target for one in above.targets]
    elif isinstance(above, cst.Element):
        around = tree.parent(tree.parent(above))
        names = [around.target] if isinstance(around, cst.For) else []
    elif isinstance(above, cst.Arg) and isinstance(tree.parent(tree.parent(above)), cst.Expr):
        called = tree.parent(above)
        if called.func is not node and not _writes_nothing(ctx, called):
            yield None, info
    words = [one.value for one in names if isinstance(one, cst.Name)]
    for one in tree.within(info.node.body, cst.Name) if info is not None and words else ():
        if one.value in words and tree.parent(one) is not above:
            yield from _written(ctx, one, named=True)


def _writes_nothing(ctx: Context, call: cst.Call) -> bool:
    """Whether a call alone on its line writes no gradient to what it is handed."""
    return (ctx.facts.callee(call) or "").startswith(("torch.", "Tensor.", "builtins."))


def _written(ctx: Context, node: cst.BaseExpression, named: bool = False) -> Iterator[Fill]:
    """What the statement around an expression writes to the tensor that it is, or shows a part of."""
    tree, info = ctx.facts.tree, _info(ctx, node)
    if info is None or info.short in _BUILDING or runs_without(ctx, node):
        return
    inner, above = node, tree.parent(node)
    while isinstance(above, (cst.Attribute, cst.Subscript, cst.Call)):
        if getattr(above, "value", None) is not inner and getattr(above, "func", None) is not inner:
            return
        if isinstance(above, cst.Attribute) and above.attr.value in _APART:
            return
        if isinstance(inner, cst.Attribute) and isinstance(above, cst.Call):
            word = inner.attr.value
            if inner is not node and word.endswith("_") and not word.endswith("__"):
                for one in above.args:
                    yield one.value, info
                if word == "requires_grad_":
                    yield None, info
        inner, above = above, tree.parent(above)
    bound = named and inner is node  # the name gets another value, and the tensor none
    if isinstance(above, cst.AugAssign) and above.target is inner:
        yield above.value, info
    elif isinstance(above, cst.AssignTarget) and not bound:
        yield tree.parent(above).value, info
    elif isinstance(above, cst.Element) and not bound:
        yield from _from_tuple(ctx, above, info)


def _from_tuple(ctx: Context, element: cst.Element, info: FunctionInfo) -> Iterator[Fill]:
    """``self.h, self.c = h, c``"""
    tree = ctx.facts.tree
    target = tree.parent(element)
    above = tree.parent(target)
    if isinstance(above, cst.AssignTarget):
        value = tree.parent(above).value
        same = isinstance(value, cst.Tuple) and len(value.elements) == len(target.elements)
        yield (value.elements[list(target.elements).index(element)].value if same else value), info


def _info(ctx: Context, node: cst.CSTNode) -> FunctionInfo | None:
    """The function that a node stands in."""
    for around in reversed(ctx.facts.tree.around(node)):
        if isinstance(around, cst.FunctionDef):
            return ctx.facts.functions.get(around)
    return None
