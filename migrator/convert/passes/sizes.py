"""``torch.Size`` is a plain tuple in JAX: what it can do more, and where torch tells it from one."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_LEGACY = frozenset(
    f"torch.{kind}Tensor" for kind in ("", "Float", "Double", "Long", "Int", "Bool")
)
_LEGACY |= {"Tensor.new"}


@converts(cst.Call, named=("numel",))
def elements(rw: Rewriter, node: cst.Call) -> cst.Call | None:
    """``x.shape.numel()`` → ``math.prod(x.shape)``."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "numel" or node.args:
        return None
    if not isinstance(rw.ctx.kind(func.value), (k.Sequence, k.Tuple)):
        return None
    rw.ctx.helpers.use("math")
    made = cst.Call(syntax.parse("math.prod"), [cst.Arg(rw.visit(func.value))])
    return syntax.with_args(made, list(made.args))


@converts(cst.Call, called=_LEGACY)
def sized(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``torch.Tensor(x.size())`` → ``torch.Tensor(*x.size())``: of a size torch makes a tensor of that size."""
    if rw.ctx.facts.callee(node) not in _LEGACY or len(node.args) != 1:
        return None
    only = node.args[0]
    if only.star or only.keyword is not None or not _is_size(rw.ctx, only.value):
        return None
    kept = node.with_changes(args=[only.with_changes(star="*")])
    rw.ctx.facts.kinds[kept] = rw.ctx.facts.kind(node)
    made: cst.BaseExpression = rw.visit(kept)
    return made


def _is_size(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    if isinstance(kind, k.Sequence) and kind.type == "size":
        return True
    if isinstance(node, cst.BinaryOperation):
        either = _is_size(ctx, node.left) or _is_size(ctx, node.right)
        return either and isinstance(node.operator, (cst.Add, cst.Multiply))
    if isinstance(node, cst.Call):
        of_tensor = isinstance(node.func, cst.Attribute) and node.func.attr.value == "size"
        of_tensor = of_tensor and not node.args
        return of_tensor or ctx.facts.callee(node) == "torch.Size"
    if isinstance(node, cst.Subscript) and isinstance(node.slice[0].slice, cst.Slice):
        return _is_size(ctx, node.value)
    return isinstance(node, cst.Attribute) and node.attr.value == "shape"
