"""``del self.weight``: an attribute goes, not the array it holds."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Del)
def deleted(rw: Rewriter, node: cst.Del) -> Any:
    """Parameters and buffers of an own module are deleted under their names.

    Raises:
      Failure: what the attribute becomes is computed, or belongs to a layer of Flax.
    """
    target = node.target
    if isinstance(target, (cst.Tuple, cst.List)):
        parts = [syntax.changed(e, value=_target(rw, node, e.value)) for e in target.elements]
        return syntax.changed(node, target=syntax.changed(target, elements=parts))
    return syntax.changed(node, target=_target(rw, node, target))


def _target(rw: Rewriter, node: cst.Del, target: cst.BaseExpression) -> cst.BaseExpression:
    made: cst.BaseExpression = rw.visit(target)
    if isinstance(target, cst.Subscript) and isinstance(made, cst.Subscript):
        return made
    if isinstance(target, cst.Name) and isinstance(made, cst.Name):
        return made
    if isinstance(target, cst.Attribute) and isinstance(made, cst.Attribute):
        if made.attr.value == target.attr.value:
            return made
    if isinstance(made, cst.Subscript) and isinstance(target, cst.Attribute):
        held = made.value
        kind = rw.ctx.kind(target.value)
        own = rw.ctx.is_self(target.value) or rw.ctx.class_of(kind) is not None
        kept = isinstance(held, cst.Attribute) and held.attr.value == target.attr.value
        if own and kept and isinstance(rw.ctx.kind(target), (k.Tensor, k.Optional)):
            return held  # ``self.weight[...]``, the array of the variable
    what = f"`{syntax.code(target)}` is deleted, which has no such name in the output"
    raise Failure(node, "API007", what, "build the module without it")
