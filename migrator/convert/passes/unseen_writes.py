"""Writes that look like reads: ``operator.iadd(x, y)``, ``x.__setitem__(0, v)``, ``getattr(self, name).data = v``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.several_targets import begins_as_number
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_ADDS = "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split()
_OPERATOR = frozenset(f"operator.i{name}" for name in _ADDS) | {
    "operator.setitem",
    "operator.delitem",
    "operator.iconcat",
}
_METHODS = frozenset(f"__i{name}__" for name in _ADDS) | {"__setitem__"}
_IN_PLACE = "write it as a statement, `x += y` or `x[i] = y`"


@converts(cst.Attribute, cst.Name, when=lambda ctx: "operator" in ctx.words)
def by_operator(rw: Rewriter, node: cst.Attribute | cst.Name) -> None:
    """``operator.iadd(x, y)`` gives a new array in JAX and leaves x as it is."""
    name = rw.ctx.facts.qualified_name(node)
    if name in _OPERATOR:
        raise Failure(node, "MUT001", f"{name} may write to a tensor in place", _IN_PLACE)


@converts(cst.Call, when=lambda ctx: not _METHODS.isdisjoint(ctx.words))
def by_method(rw: Rewriter, node: cst.Call) -> None:
    """``x.__iadd__(y)``"""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _METHODS:
        return
    if _may_be_tensor(rw.ctx, func.value):
        what = f"`{syntax.code(func)}()` may write to a tensor in place"
        raise Failure(node, "MUT001", what, _IN_PLACE)


def _may_be_tensor(ctx: Context, node: cst.BaseExpression) -> bool:
    if ctx.is_self(node) or (isinstance(node, cst.Call) and syntax.code(node.func) == "super"):
        return False
    return k.perhaps_tensor(ctx.kind(node)) is not None or isinstance(ctx.kind(node), k.Unknown)


@converts(cst.Assign, targets=(cst.Attribute,))
def of_what_a_call_gives(rw: Rewriter, node: cst.Assign) -> Any:
    """``getattr(self, name).data = v``; ``self.fc.weight.grad = None`` goes, as nothing is kept there in JAX."""
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Attribute) or target.attr.value not in ("data", "grad"):
            continue
        kind = rw.ctx.kind(target.value)
        if target.attr.value == "data":
            if isinstance(target.value, cst.Call) and isinstance(kind, k.Unknown):
                what = f"`{' '.join(syntax.code(target).split())[:60]}` is written, and may be any parameter"
                raise Failure(node, "MUT001", what, "write a branch for each")
        elif k.perhaps_tensor(kind) is not None:
            nothing = isinstance(node.value, cst.Name) and node.value.value == "None"
            if nothing and len(node.targets) == 1:
                return []
            what = "a gradient is kept with a tensor: jax.grad gives it as a value"
            raise Failure(
                node,
                "API002",
                what,
                "hand the gradients on, as `optimizer.update(model, grads)` does",
            )
    return None


@converts(cst.Assign, targets=(cst.Attribute,))
def data_in_place_of_a_number(rw: Rewriter, node: cst.Assign) -> None:
    """``self.sub.scale = x.mean()`` where its class has a number there: Flax takes no array for what is static."""
    ctx = rw.ctx
    value = ctx.kind(node.value)
    data = isinstance(value, (k.Tensor, k.Module)) or _makes_parameter(ctx, node.value)
    for one in node.targets if data else ():
        target = one.target
        if not isinstance(target, cst.Attribute) or ctx.is_self(target.value):
            continue
        info = ctx.class_of(ctx.kind(target.value))
        own = info.attribute(target.attr.value) if info is not None and info.torch_base else None
        if own is not None and k.scalar_type(own) is not None:
            what = f"`{target.attr.value}` is a number in its class, and given an array here"
            raise Failure(node, "MUT002", what, "give it a tensor in the class, or another name")


def _makes_parameter(ctx: Context, value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and ctx.facts.callee(value) == "torch.nn.Parameter"


@converts(cst.Assign, targets=(cst.Attribute,), values=(cst.Name,))
def another_parameter(rw: Rewriter, node: cst.Assign) -> None:
    """``old = self.w`` and then ``self.fc.bias = old`` in a forward pass: the name stands for what w held."""
    ctx = rw.ctx
    if ctx.in_init or ctx.frame is None or ctx.plan.builds_time(ctx.frame.info):
        return
    value = ctx.kind(node.value)
    if not isinstance(value, k.Tensor) or value.role != "param":
        return
    for one in node.targets:
        kind = ctx.kind(one.target)
        if isinstance(kind, k.Tensor) and kind.role == "param":
            what = f"another parameter takes the place of `{syntax.code(one.target)}`"
            raise Failure(node, "API003", what, "assign what it holds, `.data`")


@converts(cst.AugAssign)
def added_to_a_number(rw: Rewriter, node: cst.AugAssign) -> None:
    """``self.scale += x.mean()`` of what begins as a number, which is static to Flax."""
    if not isinstance(node.target, cst.Attribute) or targets.is_variable(rw.ctx, node.target):
        return
    made = _makes_parameter(rw.ctx, node.value)
    if k.perhaps_tensor(rw.ctx.kind(node.value)) is None and not made:
        return
    told = rw.ctx.is_self(node.target.value) and isinstance(rw.ctx.kind(node.target), k.Tensor)
    if (told and not made) or not begins_as_number(rw.ctx, node.target):
        return
    what = f"`{syntax.code(node.target)}` begins as a number, and an array is added to it"
    raise Failure(node, "MUT002", what, "begin with a tensor")
