"""Whole numbers taken out of tensors to say where: an array says it as well."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.passes.taken_out import without_axes
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.flags._numbers import places, taken_from


@converts(cst.Call, called=("builtins.int", "Tensor.item"))
def place(rw: Rewriter, node: cst.Call) -> Any:
    """``x[:, int(i)]`` → ``x[:, i.astype(int)]``, ``torch.roll(x, n.item())`` → ``jnp.roll(x, n)``."""
    facts = rw.ctx.facts
    name, x = facts.callee(node), taken_from(node, facts.callee)
    if isinstance(x, cst.Call) and facts.callee(x) == "Tensor.item":  # ``int(i.item())``
        name, x = "Tensor.item", taken_from(x, facts.callee)
    kind = facts.kind(x) if x is not None else None
    if x is None or not isinstance(kind, k.Tensor) or not rw.ctx.source.index.has(node):
        return None
    if rw.ctx.concrete or name == "builtins.float":
        return None
    if name == "Tensor.item" and kind.dtype not in ("int", None):
        return None

    def is_tensor(other: cst.BaseExpression) -> bool:
        return isinstance(facts.kind(other), k.Tensor)

    wide = name == "builtins.int" or kind.dtype == "int"
    if not places(node, rw.ctx.source.index.around(node), is_tensor, facts.callee, wide):
        return None
    template = without_axes(rw.ctx, kind, proved=name == "Tensor.item")
    template += "" if kind.dtype == "int" or name == "Tensor.item" else ".astype(int)"
    return syntax.substitute(syntax.parse(template), {"__x__": rw.visit(x)})
