"""Classes that derive from ``nn.Embedding`` and look their rows up as it does itself."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts

_LOOKUP = "torch.nn.functional.embedding"
_OWN = "weight padding_idx max_norm norm_type scale_grad_by_freq sparse".split()
"""What ``nn.Embedding.forward`` hands on, in the order of the parameters of ``F.embedding``."""


def _derives(ctx: Context) -> bool:
    return any(c.torch_base == "torch.nn.Embedding" for c in ctx.facts.classes.values())


@converts(cst.Call, when=_derives)
def looked_up(rw: Rewriter, node: cst.Call) -> Any:
    """``F.embedding(i, self.weight, self.padding_idx, self.max_norm, …)`` → ``super().__call__(i)``.

    That is all torch's own forward pass does, the cut of the rows to ``max_norm`` included.
    """
    ctx = rw.ctx
    owner, frame = ctx.owner, ctx.frame
    if owner is None or owner.torch_base != "torch.nn.Embedding" or frame is None:
        return None
    if ctx.facts.callee(node) != _LOOKUP or any(p.torch_base for p in owner.parents):
        return None
    given: dict[str, cst.BaseExpression] = {}
    for name, arg in zip(["input", *_OWN], node.args, strict=False):
        if arg.star:
            return None
        given[arg.keyword.value if arg.keyword is not None else name] = arg.value
    taken = given.pop("input", None)
    if (
        taken is None
        or "max_norm" not in given
        or any(name not in given or not _is_own(rw, given[name], name) for name in _OWN[:-1])
    ):
        return None
    static = frame.info.node.decorators or frame.info.outer is not None
    if static or any(name in owner.attributes for name in _OWN):
        return None
    call = syntax.parse("super().__call__")
    return syntax.with_args(cst.Call(call), [cst.Arg(rw.visit(taken))])


def _is_own(rw: Rewriter, node: cst.BaseExpression, name: str) -> bool:
    return (
        isinstance(node, cst.Attribute) and node.attr.value == name and rw.ctx.is_self(node.value)
    )
