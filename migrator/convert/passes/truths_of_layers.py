"""``if self.blocks:``: a Sequential without layers is false in torch, and Flax's has no length."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.exact import is_exact
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


def _has_sequentials(ctx: Context) -> bool:
    return "Sequential" in ctx.words


@converts(cst.Attribute, cst.Name, when=_has_sequentials, kinds=(k.Module,))
@converts(cst.Subscript, when=_has_sequentials)
def is_filled(rw: Rewriter, node: cst.Attribute | cst.Name | cst.Subscript) -> Any:
    """``if not self.blocks`` → ``if not self.blocks.layers``, by a helper where it may be None or something else."""
    ctx = rw.ctx
    if not _is_sequential(ctx, node) or not _is_asked(ctx, node) or node in ctx.redeclared:
        return None
    ctx.redeclared.add(node)
    return _filled(rw, node)


@converts(cst.BooleanOperation, when=_has_sequentials)
def chosen(rw: Rewriter, node: cst.BooleanOperation) -> Any:
    """``self.a or self.b``, for its value: ``self.a if self.a.layers else self.b``."""
    ctx, left = rw.ctx, node.left
    if not isinstance(left, (cst.Name, cst.Attribute)) or not _is_sequential(ctx, left):
        return None
    if _is_asked(ctx, left) or not ctx.facts.tree.has(node):
        return None
    body, test = syntax.unparenthesized(rw.visit(left)), _filled(rw, left)
    other = syntax.unparenthesized(rw.visit(node.right))
    if isinstance(node.operator, cst.And):
        body, other = other, body
    made = cst.IfExp(test, _operand(body), _operand(other))
    above = ctx.facts.tree.around(node)
    free = bool(above) and isinstance(above[-1], (cst.Assign, cst.Return, cst.Arg, cst.AnnAssign))
    return made if free else syntax.parenthesized(made)


def _operand(node: cst.BaseExpression) -> Any:
    return syntax.parenthesized(node) if isinstance(node, (cst.IfExp, cst.Lambda)) else node


def _filled(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    ctx, made = rw.ctx, rw.visit(node)
    if not is_exact(ctx, node):
        name = ctx.helpers.need(module_file("rules.compat.containers"), "is_filled")
        return cst.Call(cst.Name(name), [cst.Arg(syntax.unparenthesized(made))])
    return cst.Attribute(syntax.fitted(_ATTRIBUTE, "value", made), cst.Name("layers"))


_ATTRIBUTE = cst.Attribute(cst.Name("x"), cst.Name("layers"))


def _is_sequential(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    if not isinstance(kind, k.Module):
        return False
    info = ctx.facts.classes.get(kind.cls)
    if info is not None:
        own = info.method("__len__") is not None or info.method("__bool__") is not None
        return info.torch_base == "torch.nn.Sequential" and not own
    return kind.cls == "torch.nn.Sequential"


def _is_asked(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether something is asked for its truth."""
    if not ctx.facts.tree.has(node):
        return False
    child = node
    for above in reversed(ctx.facts.tree.around(node)):
        match above:
            case cst.If() | cst.IfExp() | cst.While() | cst.CompIf():
                return above.test is child
            case cst.UnaryOperation(operator=cst.Not()):
                return True
            case cst.BooleanOperation():
                child = above
            case cst.Arg():
                child = above
            case cst.Call(func=cst.Name(value="bool"), args=[only]):
                return only is child
            case _:
                return False
    return False
