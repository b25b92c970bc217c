"""Writes to a module's state under ``torch.no_grad()``: what is put there has no gradient, whatever it is computed from.

A buffer that the forward pass updates and reads again would hand the gradient on to what it was updated with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import libcst as cst

from migrator import syntax
from migrator.convert.called_untracked import gradients_off
from migrator.convert.refilled import may_have_gradient
from migrator.infer import kinds as k
from migrator.source import dotted
from rules.definitions import module_file

if TYPE_CHECKING:
    from migrator.convert.context import Context
    from migrator.convert.rewriter import Rewriter

_LIBRARIES = frozenset({"jax", "jnp", "lax", "nnx", "np", "math", "optax"})


def without_gradient(rw: Rewriter, node: Any, original: cst.CSTNode) -> Any:
    """``self.mean[...] = jax.lax.stop_gradient(…)`` of a converted statement; any other as it is."""
    if isinstance(node, list):
        return [without_gradient(rw, one, original) for one in node]
    ctx = rw.ctx
    frame = ctx.frame
    if frame is None or ctx.in_init or not gradients_off(ctx):
        return node
    kept = _kept(rw, original)
    if kept is not None and isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign)):
        node = _kept_without(rw, node, kept)
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        if _is_place(ctx, node.targets[0].target) and has_gradient(ctx, node.value):
            return syntax.changed(node, value=stopped(rw, node.value))
    elif isinstance(node, cst.AugAssign):
        if _is_place(ctx, node.target) and has_gradient(ctx, node.value):
            return syntax.changed(node, value=stopped(rw, node.value))
    elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
        call = node.value
        func = call.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "set_value":
            return node
        if len(call.args) == 1 and not _is_parameter(ctx, func.value):
            if not has_gradient(ctx, call.args[0].value):
                return node
            value = stopped(rw, call.args[0].value)
            return syntax.changed(node, value=syntax.with_args(call, [cst.Arg(value)]))
    return node


def _kept(rw: Rewriter, original: cst.CSTNode) -> cst.BaseExpression | None:
    """What a statement puts where it outlives the ``with``: in an attribute, or at the end of a list."""
    match original:
        case cst.Assign(targets, value) if any(_is_attribute(one.target) for one in targets):
            return value
        case cst.AnnAssign(target, _, value) if _is_attribute(target):
            return value
        case cst.AugAssign(_, cst.AddAssign(), value) if isinstance(rw.ctx.kind(value), _LISTS):
            return value
        case cst.Expr(cst.Call(cst.Name("setattr"), [_, _, given])):
            return given.value
    return None


_LISTS = (k.Sequence, k.Tuple)


def _is_attribute(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute)


def _kept_without(
    rw: Rewriter, node: cst.Assign | cst.AnnAssign | cst.AugAssign, original: cst.BaseExpression
) -> Any:
    """``self.last = nnx.data(jax.lax.stop_gradient(…))``"""
    from migrator.convert.passes.functions import may_hold_tensor
    from migrator.convert.passes.functions import stopped as stopped_parts

    targets = (
        [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]
    )
    value = node.value
    if value is None or not may_hold_tensor(rw, original) or not has_gradient(rw.ctx, value):
        return node
    if any(isinstance(one, cst.Subscript) for one in targets):
        return node  # the value of a Variable
    if isinstance(value, cst.Call) and syntax.code(value.func) in _HOLDING and len(value.args) == 1:
        inner = stopped_parts(rw, value.args[0].value, original)
        given = [syntax.changed(value.args[0], value=inner)]
        return syntax.changed(node, value=syntax.with_args(value, given))
    return syntax.changed(node, value=stopped_parts(rw, value, original))


_HOLDING = ("nnx.data", "nnx.List", "nnx.Dict")


def is_another_name(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a value under ``no_grad`` is a tensor from outside, which keeps its gradient: ``t = y``, ``w = self.w``.

    What the lines under it compute is stopped where it is given a name, in a function that is all under it where it
    is returned.
    """
    from migrator.convert.handed_on import may_run

    frame = ctx.frame
    if frame is None:
        return False
    if isinstance(node, cst.Attribute):
        kind = ctx.kind(node)
        return isinstance(kind, k.Tensor) and kind.role == "param"
    if not isinstance(node, cst.Name):
        return False
    plain, named = not frame.no_grad, set(syntax.parameters(frame.info.node))
    for one in ctx.facts.tree.within(frame.info.node.body, *_BINDING):
        if isinstance(one, cst.Assign) and plain:
            for to in one.targets:
                if isinstance(to.target, (cst.Name, cst.Tuple)):
                    named |= set(syntax.names(to.target))
            continue
        bound = [t.target for t in one.targets] if isinstance(one, cst.Assign) else [one]
        held = isinstance(one, cst.Assign) and isinstance(one.value, cst.Attribute)
        if held and is_another_name(ctx, one.value):
            named |= {t.value for t in bound if isinstance(t, cst.Name)}  # w = self.weight
            continue
        if isinstance(one, cst.AugAssign) and isinstance(ctx.kind(one.target), k.Tensor):
            if may_run(ctx, frame.info):
                continue  # it is the tensor that it was, with the gradient that it had
        bound = [t for t in bound if not isinstance(t, (cst.Subscript, cst.Attribute))]
        if any(node.value in syntax.names(part) for part in map(_bound, bound)):
            return False
    return node.value in named


_BINDING = (
    cst.Assign,
    cst.AnnAssign,
    cst.AugAssign,
    cst.For,
    cst.CompFor,
    cst.NamedExpr,
    cst.AsName,
)


def _bound(node: cst.CSTNode) -> cst.CSTNode:
    """What a statement or expression binds."""
    if isinstance(node, cst.AsName):
        return node.name
    return getattr(node, "target", node)


def stopped(rw: Rewriter, value: cst.BaseExpression) -> cst.BaseExpression:
    """The value without its gradient, or with it where that depends on a switch."""
    ctx = rw.ctx
    value = syntax.unparenthesized(value)
    if ctx.gradient_if and not (ctx.frame and ctx.frame.no_grad):
        name = ctx.helpers.need(module_file("rules.compat.no_grad"), "gradient_if")
        return syntax.with_args(
            cst.Call(cst.Name(name)), [cst.Arg(ctx.gradient_if[-1]), cst.Arg(value)]
        )
    ctx.helpers.use("jax")
    call = cst.Call(syntax.parse("jax.lax.stop_gradient"))
    return syntax.with_args(call, [cst.Arg(value)])


def _is_place(ctx: Context, target: cst.BaseExpression) -> bool:
    """``self.mean[...]``: the value of a Variable that is no parameter, whose own gradient is taken care of."""
    if not isinstance(target, cst.Subscript) or len(target.slice) != 1:
        return False
    index = target.slice[0].slice
    whole = isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis)
    return whole and not _is_parameter(ctx, target.value)


def _is_parameter(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    if isinstance(node, cst.Attribute) and dotted(node) == f"self.{node.attr.value}" and ctx.owner:
        kind = ctx.owner.attribute(node.attr.value) or kind
    return isinstance(kind, k.Tensor) and kind.role == "param"


def has_gradient(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a value of the output may have a gradient: it is made of more than numbers, buffers and settings."""
    if isinstance(node, cst.Name):
        return node.value not in _LIBRARIES and not _is_free(ctx, node, ctx.kind(node))
    if isinstance(node, cst.Attribute):
        head, *rest = (dotted(node) or "").split(".")
        if head == "self" and rest:
            owner = ctx.owner
            own = cst.Attribute(cst.Name(head), cst.Name(rest[0]))
            return owner is None or not _is_free(ctx, own, owner.attribute(rest[0]) or k.UNKNOWN)
        return head not in _LIBRARIES and has_gradient(ctx, node.value)
    if isinstance(node, cst.Call):
        if syntax.code(node.func) in _STOPPING or _is_helper(ctx, node.func):
            return False
        func = node.func.value if isinstance(node.func, cst.Attribute) else None
        parts: list[cst.CSTNode] = [arg.value for arg in node.args]
        return any(has_gradient(ctx, one) for one in ([func] if func is not None else []) + parts)
    if isinstance(node, cst.Arg):
        return has_gradient(ctx, node.value)
    return any(has_gradient(ctx, child) for child in syntax.children(node))


_STOPPING = ("jax.lax.stop_gradient", "lax.stop_gradient")


def _is_helper(ctx: Context, func: cst.CSTNode) -> bool:
    """Whether a function is one of those that write past a gradient, or take it away."""
    names = [
        ctx.helpers.names.get((module_file(file).path, one))
        for file, one in (
            ("rules.compat.data", "with_data"),
            ("rules.compat.data", "with_new_data"),
            ("rules.compat.no_grad", "without_gradient"),
            ("rules.compat.no_grad", "gradient_if"),
        )
    ]
    return isinstance(func, cst.Name) and func.value in names


def _is_free(ctx: Context, node: cst.CSTNode, kind: k.Kind) -> bool:
    """Whether a value of a kind has no gradient: a buffer that gets none, whole numbers, a setting."""
    if isinstance(kind, k.Optional):
        return _is_free(ctx, node, kind.inner)
    if isinstance(kind, k.Tensor):
        if kind.dtype in ("int", "bool"):
            return True
        return kind.role == "buffer" and not may_have_gradient(ctx, node)
    return isinstance(kind, (k.Scalar, k.Const, k.DType, k.Device))
