"""``self.register_buffer("cache", None)``: a buffer that a later assignment gives a tensor, and a key in the state_dict."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


def _registers(ctx: Context) -> bool:
    return "register_buffer" in ctx.words or ctx.facts.linked is not None


@converts(cst.Assign, targets=(cst.Attribute,), when=_registers)
def filled_later(rw: Rewriter, node: cst.Assign) -> cst.Assign | None:
    """``self.cache = x`` → ``self.cache = filled(self.cache, x)``, which makes a Variable of what is None."""
    ctx, target = rw.ctx, node.targets[0].target
    owner = ctx.owner
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or owner is None:
        return None
    name = target.attr.value
    if not ctx.is_self(target.value) or not isinstance(ctx.kind(node.value), (k.Tensor, k.Unknown)):
        return None
    if not any(f"<none:{name}>" in one.statics for one in owner.lineage()):
        return None
    if not isinstance(owner.attribute(name), (k.Optional, k.Unknown)):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.buffers"), "filled")
    value = syntax.unparenthesized(rw.visit(node.value))
    call = syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(target), cst.Arg(value)])
    return syntax.changed(node, value=call)
