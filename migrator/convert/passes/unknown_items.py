"""``x[i] = v`` of an argument that may be an array or a list: only the run knows which of the two it is."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation, innermost
from migrator.convert.memory import aliases
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from migrator.infer.evidence import ASKED
from rules.definitions import module_file


def may_be_a_list(rw: Rewriter, target: cst.Subscript) -> bool:
    """``features[i] = …`` of a tensor, as it seems, that is only ever asked for an item: or a list of them."""
    frame, ctx = rw.ctx.frame, rw.ctx
    if frame is None or type(target.value) is not cst.Name or len(target.slice) != 1:
        return False
    index, name, info = target.slice[0].slice, target.value.value, frame.info
    if not isinstance(index, cst.Index) or isinstance(ctx.kind(index.value), k.Tensor):
        return False
    every = {p.name.value: p for p in info.node.params.params}
    if name not in every or every[name].annotation is not None:
        return False
    told = info.sites.get(name, k.UNKNOWN) != k.UNKNOWN or name in info.evidence
    return not told and (info.uses or {}).get(name) == {"indexed"}


def may_be_either(rw: Rewriter, target: cst.BaseExpression) -> bool:
    """Whether an item is written of an argument of which nothing is known, and that is read afterwards.

    A name or number for an index tells nothing; who is asked for ``items()`` or a text is a dict."""
    ctx = rw.ctx
    if type(target) is not cst.Subscript or len(target.slice) != 1 or not ctx.statements:
        return False
    index, name = target.slice[0].slice, target.value
    if ctx.frame is None or type(name) is not cst.Name:
        return False
    info = ctx.frame.info
    every = {p.name.value: p for p in info.node.params.params[info.owner is not None :]}
    if name.value not in every or every[name.value].annotation is not None:
        return False
    if ctx.kind(name) != k.UNKNOWN:
        return False
    if isinstance(index, cst.Index) and k.scalar_type(ctx.kind(index.value)) == "str":
        return False
    if (info.uses or {}).get(name.value, set()) & _TOLD or innermost(ctx) is not info:
        return False
    return name.value in aliases(ctx, info).read_after(ctx.statements[-1].node)


_TOLD = {"container", "called", "attribute", ASKED}
"""Uses that speak against an array."""


def written(
    rw: Rewriter, node: cst.CSTNode, target: cst.BaseExpression, value: cst.BaseExpression
) -> cst.Assign:
    """``x = with_item(x, i, v)``; a Failure where another name for the array is read later."""
    assert isinstance(target, cst.Subscript)
    check_mutation(rw.ctx, node, target.value)
    return with_item(rw, target, rw.visit(value))


def with_item(rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression) -> cst.Assign:
    """``x = with_item(x, i, value)``; the value is converted already."""
    name = rw.ctx.helpers.need(module_file("rules.compat.indexing"), "with_item")
    index = target.slice[0].slice
    assert isinstance(target.value, cst.Name)
    place = index.value if isinstance(index, cst.Index) else _slice(index)
    given = [cst.Arg(rw.visit(one)) for one in (target.value, place)]
    made = syntax.with_args(cst.Call(cst.Name(name)), [*given, cst.Arg(value)])
    return cst.Assign([cst.AssignTarget(target.value)], made)


def _slice(index: cst.BaseSlice) -> cst.Call:
    """``slice(1, None)`` for ``1:``."""
    assert isinstance(index, cst.Slice)
    parts = [index.lower, index.upper, *([index.step] if index.step is not None else [])]
    given = [cst.Arg(part if part is not None else cst.Name("None")) for part in parts]
    return syntax.with_args(cst.Call(cst.Name("slice")), given)
