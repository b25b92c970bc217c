"""Sequentials of another file that something here goes over: ``run(net.body, x)`` where ``run`` reads layer by layer."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.gone_over import handed
from migrator.convert.rewriter import Failure, Rewriter, converts


@converts(cst.Call, cst.Assign, when=lambda ctx: bool(handed(ctx).elsewhere))
def elsewhere(rw: Rewriter, node: cst.Call | cst.Assign) -> None:
    """Check what is handed over, and what a class has under the name that its base goes over.

    Raises:
      Failure: the layers stand in a Sequential that this file does not make, and in Flax has no items.
    """
    known = handed(rw.ctx).elsewhere
    parts = [a.value for a in node.args] if isinstance(node, cst.Call) else []
    if isinstance(node, cst.Assign):
        parts = [one.target for one in node.targets]
    for part in parts:
        if part in known:
            what = (
                f"`{syntax.code(part)}`, a Sequential that is not made here, is gone over as a list"
            )
            raise Failure(node, "API007", what, "hand nn.ModuleList([*layers]) instead")
