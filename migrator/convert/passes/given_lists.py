"""``self.supports = supports`` of a constructor: a list of tensors, as the way it is used tells, is data to Flax."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def given(rw: Rewriter, node: cst.Assign) -> cst.Assign | None:
    """``self.supports = kept(supports)``"""
    ctx, owner = rw.ctx, rw.ctx.owner
    if owner is None or owner.torch_base is None or not ctx.in_init or len(node.targets) != 1:
        return None
    target = node.targets[0].target
    if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value):
        return None
    name = node.value
    init = owner.method("__init__")
    if not isinstance(name, cst.Name) or init is None or name.value not in init.params:
        return None
    kind = ctx.kind(name)
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    if not isinstance(inner, k.Unknown) or not _is_joined(ctx, owner, target.attr.value):
        return None
    function = cst.Name(ctx.helpers.need(module_file("rules.compat.factories"), "kept"))
    value = syntax.with_args(cst.Call(function), [cst.Arg(rw.visit(name))])
    made: Any = syntax.changed(node, value=value)
    return made


def _is_joined(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether a method joins a list of tensors to it, or multiplies by what it holds."""
    tree = ctx.facts.tree
    for method in owner.methods.values():
        body = method.node.body
        for node in tree.within(body, cst.BinaryOperation):
            if isinstance(node.operator, cst.Add):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    if _is_own(ctx, one, name) and _holds_tensors(ctx, other):
                        return True
        for loop in tree.within(body, cst.For, cst.CompFor):
            if _is_own(ctx, loop.iter, name) and isinstance(loop.target, cst.Name):
                if _multiplies(ctx, body, loop.target.value):
                    return True
        for call in tree.within(body, cst.Call):
            func = call.func
            if isinstance(func, cst.Attribute) and func.attr.value in ("append", "extend"):
                if _is_own(ctx, func.value, name) and len(call.args) == 1:
                    value = call.args[0].value
                    if _is_tensor(ctx, value) or _holds_tensors(ctx, value):
                        return True
    return False


def _is_own(ctx: Context, node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == name and ctx.is_self(node.value)


def _is_tensor(ctx: Context, node: cst.BaseExpression) -> bool:
    return isinstance(ctx.facts.kind(node), k.Tensor)


def _holds_tensors(ctx: Context, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.List) and any(_is_tensor(ctx, one.value) for one in node.elements)


_PRODUCTS = frozenset({"torch.matmul", "torch.mm", "torch.bmm", "torch.einsum", "torch.spmm"})


def _multiplies(ctx: Context, body: cst.CSTNode, name: str) -> bool:
    """Whether ``a`` of ``for a in self.supports`` is a matrix: ``x @ a``, ``torch.einsum("nv,vw->nw", x, a)``."""
    tree = ctx.facts.tree
    for node in tree.within(body, cst.BinaryOperation):
        if isinstance(node.operator, cst.MatrixMultiply):
            if any(isinstance(s, cst.Name) and s.value == name for s in (node.left, node.right)):
                return True
    for call in tree.within(body, cst.Call):
        if ctx.facts.callee(call) in _PRODUCTS:
            if any(isinstance(a.value, cst.Name) and a.value.value == name for a in call.args):
                return True
    return False
