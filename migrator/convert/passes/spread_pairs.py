"""``torch.min(*self.critics(z))`` of two tensors: the smaller of both, element by element."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_OF_PAIRS = {
    "torch.min": "minimum",
    "torch.max": "maximum",
    "torch.minimum": "minimum",
    "torch.maximum": "maximum",
}


@converts(cst.Call, called=tuple(_OF_PAIRS))
def of_pair(rw: Rewriter, node: cst.Call) -> Any:
    """``jnp.minimum(*pair)``, where it is known that the pair is one of tensors."""
    name = _OF_PAIRS.get(rw.ctx.facts.callee(node) or "")
    only = node.args[0] if len(node.args) == 1 else None
    if name is None or only is None or only.star != "*":
        return None
    kind = rw.ctx.kind(only.value)
    if not isinstance(kind, k.Tuple) or len(kind.items) != 2:
        return None
    if not all(isinstance(one, k.Tensor) for one in kind.items):
        return None
    rw.ctx.helpers.use("jnp")
    func = syntax.parse(f"jnp.{name}")
    return syntax.with_args(cst.Call(func), [cst.Arg(rw.visit(only.value), star="*")])
