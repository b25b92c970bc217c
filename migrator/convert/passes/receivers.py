"""What is registered with something that is not known to be a module."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k

_METHODS = ("register_buffer", "register_parameter")


def may_be_module(
    rw: Rewriter, node: cst.CSTNode, receiver: cst.BaseExpression, method: str
) -> None:
    """Raise a Failure for ``net.register_buffer(…)`` where ``net`` is not known, or of a class modules may derive from."""
    kind = rw.ctx.kind(receiver)
    info = rw.ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    own = info is not None and any(info.method(name) for name in _METHODS)
    if method in _METHODS and (isinstance(kind, k.Unknown) or (info is not None and not own)):
        what = f"{method}() of what is not known to be a module here"
        raise Failure(node, "API005", what, "derive the class from nn.Module, or annotate it")
