"""``self.forward = self.forward_fast``: another function in the place of forward()."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_COMPILERS = ("torch.compile", "torch.compiler.disable")


@converts(cst.Assign, named=("forward",), targets=(cst.Attribute,))
def forwardreplaced(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.forward = self.forward_fast``, which torch calls from then on; what is only compiled stays."""
    value, only = node.value, node.targets[0].target
    if isinstance(value, cst.Call) and rw.ctx.facts.callee(value) in _COMPILERS:
        given = value.args[0] if value.args and value.args[0].keyword is None else None
        same = given is not None and not given.star and given.value.deep_equals(only)
        if same and len(node.targets) == 1:
            return []
    for item in node.targets:
        target = item.target
        if isinstance(target, cst.Attribute) and target.attr.value == "forward":
            if may_be_called(rw, target.value):
                raise replaced(target)


def may_be_called(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether something may be a module, or is of a plain class whose ``forward`` modules inherit."""
    kind = rw.ctx.kind(node)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(kind, k.Other):
        info = rw.ctx.facts.classes.get(kind.type)
        return info is not None and info.torch_base is None and not info.gradient
    return isinstance(kind, (k.Module, k.Unknown))


def replaced(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API005",
        "forward() is replaced on an instance, which Flax does not call",
        "keep the function under another name, and let forward() call it",
    )
