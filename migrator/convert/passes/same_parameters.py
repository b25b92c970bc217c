"""``self.bias is None``, ``self.head.weight is self.embed.weight``: questions about a parameter itself, not about its value."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Comparison)
def identity(rw: Rewriter, node: cst.Comparison) -> Any:
    """Compare the Variables themselves, whatever Flax calls them.

    Raises:
      Failure: a parameter is compared with what may be the value of one here.
    """
    asks = all(isinstance(one.operator, (cst.Is, cst.IsNot)) for one in node.comparisons)
    if not asks or isinstance(node.left, cst.NamedExpr):
        return None
    ctx, others = rw.ctx, [one.comparator for one in node.comparisons]
    if all(map(_is_none, others)):
        return _absent(rw, node)
    sides = [node.left, *others]
    _check_layers(ctx, node, sides)
    if not any(targets.is_variable(ctx, one) for one in sides):
        return None
    made = [_itself(rw, node, one) for one in sides]
    comparisons = [
        syntax.changed(one, comparator=side)
        for one, side in zip(node.comparisons, made[1:], strict=True)
    ]
    return syntax.changed(node, left=made[0], comparisons=comparisons)


def _check_layers(ctx: Context, node: cst.CSTNode, sides: list[cst.BaseExpression]) -> None:
    """Raise a Failure for the weights of layers of which Flax keeps no common one, or none that is known here."""
    owners = [s.value for s in sides if isinstance(s, cst.Attribute) and s.attr.value == "weight"]
    if len(owners) < 2:
        return
    kinds = [ctx.kind(one) for one in owners]
    unknown = any(isinstance(kind, k.Unknown) or k.is_unknown_module(kind) for kind in kinds)
    embeds = [isinstance(kind, k.Module) and "torch.nn.Embedding" in kind.cls for kind in kinds]
    mixed = any(embeds) and not all(embeds)
    if unknown or mixed or any(_shares_with_embedding(ctx, one) for one in owners):
        what = (
            "it is asked whether layers share their weight, which Flax may keep otherwise in each"
        )
        raise Failure(node, "API009", what, "note in an attribute that the weight is shared")


def _shares_with_embedding(ctx: Context, owner: cst.BaseExpression) -> bool:
    """Whether the file gives a layer of that name the weight of an Embedding: ``self.head.weight = self.embed.weight``."""
    if not isinstance(owner, cst.Attribute):
        return False
    for line in ctx.source.index.of_type(cst.Assign):
        value, target = line.value, line.targets[0].target
        if not isinstance(value, cst.Attribute) or not isinstance(target, cst.Attribute):
            continue
        if isinstance(target.value, cst.Attribute) and target.attr.value == "weight":
            kind = ctx.kind(value.value)
            if target.value.attr.value == owner.attr.value and isinstance(kind, k.Module):
                return "torch.nn.Embedding" in kind.cls
    return False


def _absent(rw: Rewriter, node: cst.Comparison) -> Any:
    held = node.left
    if isinstance(held, cst.Attribute) and held.attr.value == "weight":
        if k.is_any_module(rw.ctx.kind(held.value)):
            helper = rw.ctx.helpers.need(module_file("rules.compat.initialize"), "weight_of")
            asked = syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(held.value))])
            return syntax.changed(node, left=asked)
    if isinstance(held, cst.Call) or not targets.is_variable(rw.ctx, held):
        return None
    reference, _ = targets.variable_reference(rw, held)
    return node if reference is held else syntax.changed(node, left=reference)


def _is_none(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _itself(rw: Rewriter, node: cst.CSTNode, side: cst.BaseExpression) -> cst.BaseExpression:
    """The Variable that one side names."""
    ctx = rw.ctx
    if _is_none(side) or ctx.kind(side) == k.NONE:
        return rw.visit(side)
    if targets.is_variable(ctx, side):
        if isinstance(side, cst.Attribute):
            return targets.variable_reference(rw, side)[0]
        if isinstance(side, cst.Name) and _is_gone_over(ctx, side.value):
            return side
    what = f"`{syntax.code(side)}` is compared with a parameter itself, and may be the value of one in the output"
    raise Failure(node, "API006", what, "compare the modules that have them")


def _is_gone_over(ctx: Context, name: str) -> bool:
    """Whether loops alone give a function a name: ``for p in self.parameters()``."""
    if ctx.frame is None or name in ctx.frame.info.params:
        return False
    within = ctx.facts.tree.within
    body = ctx.frame.info.node.body
    loops = within(body, cst.For, cst.CompFor)
    bound = within(body, cst.AssignTarget, cst.AnnAssign, cst.NamedExpr, cst.AugAssign)
    return any(name in syntax.names(one.target) for one in loops) and not any(
        name in syntax.names(one.target) for one in bound
    )


@converts(cst.Call, called=("builtins.id",))
def number(rw: Rewriter, node: cst.Call) -> Any:
    """``id(self.head.weight)``: of the Variable.

    Raises:
      Failure: it may be asked of the value of a parameter here.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.id" or len(node.args) != 1:
        return None
    asked = node.args[0].value
    if isinstance(asked, cst.Attribute) and _shares_with_embedding(ctx, asked.value):
        _check_layers(ctx, node, [asked, asked])
    if not targets.is_variable(ctx, asked):
        return None
    return syntax.changed(node, args=[syntax.changed(node.args[0], value=_itself(rw, node, asked))])
