"""``self.supports = supports`` of a constructor: a list of tensors, as the way it is used tells, is data to Flax."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
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
    init = owner.method("__init__")
    if init is None or not _is_given(ctx, init, node.value):
        return None
    if not _is_joined(ctx, owner, target.attr.value):
        return None
    function = cst.Name(ctx.helpers.need(module_file("rules.compat.factories"), "kept"))
    value = syntax.with_args(cst.Call(function), [cst.Arg(rw.visit(node.value))])
    made: Any = syntax.changed(node, value=value)
    return made


def _is_given(ctx: Context, init: FunctionInfo, value: cst.BaseExpression) -> bool:
    """Whether a value is what a constructor is handed, of no known kind: ``ts``, ``ts if isinstance(ts, list) else [ts]``."""
    if isinstance(value, cst.IfExp):
        return any(_is_given(ctx, init, one) for one in (value.body, value.orelse))
    if not isinstance(value, cst.Name):
        return False
    params = init.node.params
    stars = [one for one in (params.star_arg, params.star_kwarg) if isinstance(one, cst.Param)]
    if value.value not in init.params and value.value not in [one.name.value for one in stars]:
        return False
    kind = ctx.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(kind, (k.Sequence, k.Mapping)):
        kind = kind.item if isinstance(kind, k.Sequence) else kind.value  # *tensors, **tensors
    return isinstance(kind, k.Unknown)


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
            if _goes_over(ctx, loop.iter, name):
                if any(_computes_with(ctx, body, one) for one in _values(loop)):
                    return True
        for item in tree.within(body, cst.Subscript):
            if _is_own(ctx, item.value, name) and _is_operand(ctx, item):
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


def _goes_over(ctx: Context, node: cst.BaseExpression, name: str) -> bool:
    """``self.supports``, ``enumerate(self.supports)``, ``zip(self.supports, layers)``, ``self.tables.values()``."""
    if _is_own(ctx, node, name):
        return True
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("values", "items"):
        return _is_own(ctx, node.func.value, name)
    if isinstance(node.func, cst.Name) and node.func.value in ("enumerate", "zip", "reversed"):
        return any(_is_own(ctx, one.value, name) for one in node.args)
    return False


def _values(loop: cst.For | cst.CompFor) -> list[str]:
    return list(syntax.names(loop.target))


def _computes_with(ctx: Context, body: cst.CSTNode, name: str) -> bool:
    """Whether ``a`` of ``for a in self.supports`` is an operand beside a tensor: ``x @ a``, ``torch.mm(x, a)``."""
    tree = ctx.facts.tree
    return any(one.value == name and _is_operand(ctx, one) for one in tree.within(body, cst.Name))


_FUNCTIONS = frozenset(
    f"torch.{name}" for name in "matmul mm bmm einsum spmm mul add sub div where cat stack".split()
)


def _is_operand(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether something stands beside a tensor in an operation, or is handed to a function of tensors."""
    if not ctx.facts.tree.has(node):
        return False
    around = ctx.facts.tree.around(node)
    parent = around[-1]
    if isinstance(parent, cst.BinaryOperation):
        other = parent.right if parent.left is node else parent.left
        return isinstance(parent.operator, cst.MatrixMultiply) or _is_tensor(ctx, other)
    if isinstance(parent, cst.Arg):
        call = around[-2]
        return isinstance(call, cst.Call) and ctx.facts.callee(call) in _FUNCTIONS
    return False
