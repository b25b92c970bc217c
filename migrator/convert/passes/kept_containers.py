"""What Python asks of lists and dicts that hold arrays, which a Flax module keeps in containers of its own kind."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.containing import holds_tensor
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Attribute, kinds=(k.Sequence, k.Mapping))
def as_python(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.tables + [x]`` → ``list(self.tables) + [x]``; ``self.named.get("a")`` → ``dict(self.named).get("a")``."""
    ctx = rw.ctx
    kind = ctx.kind(node)
    if node in ctx.redeclared or not ctx.is_self(node.value) or not holds_tensor(kind):
        return None
    if isinstance(kind, k.Sequence) and kind.type != "list":
        return None
    if not _is_python(ctx, node, kind):
        return None
    ctx.redeclared.add(node)
    word = "list" if isinstance(kind, k.Sequence) else "dict"
    return cst.Call(cst.Name(word), [cst.Arg(rw.visit(node))])


def _is_python(ctx: Context, node: cst.Attribute, kind: k.Kind) -> bool:
    """Whether an operator or a method is meant that only Python's own container has."""
    if not ctx.facts.tree.has(node):
        return False
    match ctx.facts.tree.around(node)[-2:]:
        case [_, cst.BinaryOperation(operator=cst.Add() | cst.Multiply())]:
            return isinstance(kind, k.Sequence)
        case [_, cst.BinaryOperation(operator=cst.BitOr())]:
            return isinstance(kind, k.Mapping)
        case [cst.Call() as call, cst.Attribute() as method] if call.func is method:
            only = {"copy", "index", "count"} if isinstance(kind, k.Sequence) else {"copy", "get"}
            return method.value is node and method.attr.value in only
    return False
