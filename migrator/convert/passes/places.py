"""Whether an expression is a device, or the number of one."""

from __future__ import annotations

import libcst as cst

from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k

_PLACES = frozenset("device dev rank local_rank gpu gpu_id device_id cuda_id".split())
"""Names under which programs keep a device, or its number."""


def is_place(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether an expression is known, by its kind or else its name, to be a device."""
    kind = rw.ctx.kind(node)
    if isinstance(kind, k.Device):
        return True
    if isinstance(kind, (k.Tensor, k.DType, k.Module)):
        return False
    if isinstance(node, (cst.SimpleString, cst.FormattedString)):
        return True
    last = node.attr if isinstance(node, cst.Attribute) else node
    return isinstance(last, cst.Name) and last.value in _PLACES
