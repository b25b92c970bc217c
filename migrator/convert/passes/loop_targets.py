"""``for self.mean.data in rows:``, ``with scope() as x[0]:``: a loop or a context that writes to a tensor is a finding."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.passes.several_targets import each, is_written
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.For, cst.CompFor, cst.With)
def bound(rw: Rewriter, node: cst.For | cst.CompFor | cst.With) -> None:
    """What is bound must be a name, or an attribute that takes what it is given."""
    given = (
        [item.asname.name for item in node.items if item.asname is not None]
        if isinstance(node, cst.With)
        else [node.target]
    )
    for one in given:
        if any(is_written(rw, place) or _is_data(rw, place) for place in each(one)):
            what = f"`{syntax.code(one)}` is written to by a loop or a context"
            raise Failure(node, "MUT002", what, "give it a name there, and assign that")


def _is_data(rw: Rewriter, place: cst.BaseExpression) -> bool:
    """Whether an attribute of the module may be given a tensor or a layer, of which Flax must be told."""
    if not isinstance(place, cst.Attribute) or not rw.ctx.is_self(place.value):
        return False
    module = rw.ctx.owner is not None and rw.ctx.owner.torch_base is not None
    return module and k.scalar_type(rw.ctx.kind(place)) is None
