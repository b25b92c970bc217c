"""Whether anything goes over a ModuleDict: ``nnx.Dict`` forgets the order of its keys under jit."""

from __future__ import annotations

import ast

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k
from migrator.infer.listed import GOING_OVER, UNNAMED, listed, made
from migrator.python_tree import walk


def order_matters(ctx: Context) -> bool:
    """Whether the file may iterate over a ModuleDict: nnx.Dict forgets the order of its keys under jit."""
    if ctx.iterates_dicts is None:
        nodes = ctx.source.index.of_type(cst.For, cst.CompFor, cst.Call)
        linked = ctx.facts.linked
        ctx.iterates_dicts = (
            any(_iterates_dict(ctx, n) for n in nodes)
            or (linked is not None and linked.lists_dicts(ctx.facts.module))
            or _lists_by_name(ctx)
        )
    return ctx.iterates_dicts


def _lists_by_name(ctx: Context) -> bool:
    """``for name in net.heads`` where nothing is known of ``net``, and some class has ``self.heads = nn.ModuleDict()``."""
    nodes = walk(ast.parse(ctx.source.text))
    return not (made(nodes, "ModuleDict") - {UNNAMED}).isdisjoint(listed(nodes))


def _iterates_dict(ctx: Context, node: cst.For | cst.CompFor | cst.Call) -> bool:
    if not isinstance(node, cst.Call):
        return _is_dict(ctx, node.iter)
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in GOING_OVER:
        kind = ctx.kind(node.func.value)
        return (
            isinstance(kind, k.Unknown) or k.is_any_module(kind) or _is_dict(ctx, node.func.value)
        )
    return any(_is_dict(ctx, a.value) for a in node.args)


def _is_dict(ctx: Context, node: cst.CSTNode) -> bool:
    kind = ctx.kind(node)
    info = ctx.class_of(kind)
    base = info.torch_base if info is not None else getattr(kind, "cls", "")
    return base == "torch.nn.ModuleDict"
