"""``self.layers = clones(n)`` and ``self.layers.pop(1)``: lists of layers that another file makes and this one edits."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.edits import EDITING, edited_parts
from migrator.convert.passes.containers import either, last_name
from migrator.convert.rewriter import Failure, Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Del)
@converts(cst.BinaryOperation)
@converts(cst.Call, named=EDITING)
def elsewhere(rw: Rewriter, node: cst.Del | cst.BinaryOperation | cst.Call) -> None:
    """Check the lists that lose or gain layers in the middle: those made in this file are such as can, of their class.

    Raises:
      Failure: a function of another file makes the list, which is a plain ``nnx.List`` there.
    """
    for owner in edited_parts(node):
        kind = rw.ctx.kind(owner)
        if not isinstance(kind, k.Module) or kind.cls != "torch.nn.ModuleList":
            continue
        if _is_made_by_others(rw.ctx, owner):
            what = f"`{syntax.code(owner)}`, a list of layers that another file makes, is edited in the middle"
            advice = "make a list of its own of them first: nn.ModuleList([*layers])"
            raise Failure(node, "API007", what, advice)


def _is_made_by_others(ctx: Context, owner: cst.BaseExpression) -> bool:
    """Whether the file gives the name of a list what a function of another file returns."""
    name = last_name(owner)
    for assign in ctx.source.index.of_type(cst.Assign):
        if all(last_name(one.target) != name for one in assign.targets):
            continue
        for value in either(assign.value):
            called = ctx.facts.kind(value.func) if isinstance(value, cst.Call) else None
            if isinstance(called, k.Function):
                info = ctx.facts.names.get(called.name)
                if info is not None and info.settled is not None:
                    return True
    return False
