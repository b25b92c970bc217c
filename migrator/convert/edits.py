"""Lists of layers that lose some in the middle, or gain some there: torch numbers the others anew, ``nnx.List`` does not."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.convert.context import Context

EDITING = ("insert", "pop", "__delitem__")


def edited(ctx: Context) -> bool:
    """Whether the file takes layers out of the middle of lists of them, or puts some there."""
    if ctx.edits_lists is None:
        nodes = ctx.source.index.of_type(cst.Call, cst.Del, cst.BinaryOperation)
        ctx.edits_lists = any(_is_list(ctx, one) for node in nodes for one in edited_parts(node))
    return ctx.edits_lists


def edited_parts(
    node: cst.Del | cst.BinaryOperation | cst.Call,
) -> Iterator[cst.BaseExpression]:
    """What a statement or call edits, if it is a list of layers: ``layers`` of ``layers.pop(1)``, ``del layers[0]``."""
    if isinstance(node, cst.BinaryOperation):
        if isinstance(node.operator, cst.Add):
            yield node.left
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in EDITING:
            yield node.func.value
    else:
        targets = node.target.elements if isinstance(node.target, cst.Tuple) else [node]
        for one in targets:
            target = one.target if isinstance(one, cst.Del) else one.value
            if isinstance(target, cst.Subscript):
                yield target.value


def _is_list(ctx: Context, node: cst.CSTNode) -> bool:
    kind = ctx.kind(node)
    info = ctx.class_of(kind)
    base = info.torch_base if info is not None else getattr(kind, "cls", "")
    return base in ("torch.nn.ModuleList", "torch.nn.Sequential")
