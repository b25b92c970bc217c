"""Empty vectors among what is joined: ``torch.cat`` leaves them out, whatever the rank of the others."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_CALLS = frozenset("torch.cat torch.concat torch.concatenate".split())
_EMPTY = re.compile(
    r"\b(?:tensor|as_tensor|\w*Tensor|new|new_tensor)\(\s*(?:\[\s*\]|\(\s*\))\s*[,)]"
    r"|\b(?:\w*Tensor|new)\(\s*\)"
    r"|\b(?:\w*Tensor|new|(?:new_)?(?:empty|zeros|ones|full)|rand|randn)\(\s*(?:0|\(\s*0\s*,?\s*\)|\[\s*0\s*\])\s*"
    r"(?:\)|,\s*(?:\)|dtype|device|requires_grad|pin_memory|fill_value|layout))"
)
"""Source that makes a vector of no elements."""
_BRACKET = re.compile(r"\(\s*(?:0|\)|[\[(]\s*[\])0])")
"""Where the arguments of such a call begin: few brackets are of this kind, and names are many."""


def _has_empty(ctx: Context) -> bool:
    """Whether a file makes such a vector."""
    text = ctx.source.text
    for bracket in _BRACKET.finditer(text):
        start = bracket.start()
        while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
        if _EMPTY.match(text, start):
            return True
    return False


@converts(cst.Call, when=_has_empty)
def join_with_empty(rw: Rewriter, node: cst.Call) -> Any:
    """``out = torch.tensor([])`` and then ``out = torch.cat([out, x])`` in a loop."""
    if rw.ctx.facts.callee(node) not in _CALLS:
        return None
    given = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
    plain = [a.value for a in node.args if a.keyword is None]
    given |= dict(zip(("tensors", "dim"), plain, strict=False))
    if any(a.star for a in node.args) or not set(given) <= {"tensors", "dim", "axis"}:
        return None
    if "tensors" not in given or _same_rank(rw, given["tensors"]):
        return None
    dim = given.get("dim", given.get("axis"))
    args = [cst.Arg(_enclosed(rw.visit(given["tensors"])))]
    if dim is not None:
        args.append(syntax.arg(rw.visit(dim), "axis"))
    helper = rw.ctx.helpers.need(module_file("rules.compat.joining"), "joined")
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


def _enclosed(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Tuple) and not value.lpar:
        return syntax.parenthesized(value)  # type: ignore[return-value]
    return value


def _same_rank(rw: Rewriter, tensors: cst.BaseExpression) -> bool:
    """Whether no tensor is an empty vector, or all are vectors."""
    if isinstance(tensors, (cst.List, cst.Tuple)):
        if any(isinstance(e, cst.StarredElement) for e in tensors.elements):
            return False
        kinds = [rw.ctx.kind(e.value) for e in tensors.elements]
    else:
        kind = rw.ctx.kind(tensors)
        if isinstance(kind, k.Tuple):
            kinds = list(kind.items)
        else:
            kinds = [kind.item] if isinstance(kind, k.Sequence) else [k.UNKNOWN]
    ranks = {kind.rank if isinstance(kind, k.Tensor) else None for kind in kinds}
    return None not in ranks and (ranks == {1} or 1 not in ranks)
