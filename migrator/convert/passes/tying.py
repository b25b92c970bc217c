"""An output layer that shares an embedding's matrix: Flax stores the two transposed to each other.

``self.head.weight = self.embed.weight`` with a Linear head without bias becomes ``self.head = self.embed`` and
``self.head(x)`` becomes ``self.head.attend(x)``: one object under two names, both keys in the state_dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

_REASON = "a Linear and an Embedding share one matrix in a way that cannot be kept"


def tied_heads(ctx: Context, info: ClassInfo) -> dict[str, cst.Attribute]:
    """Attribute name of a tied Linear head → the ``embedding.weight`` expression, for one class."""
    if info.name in ctx.tied_heads:
        return ctx.tied_heads[info.name]
    found: dict[str, cst.Attribute] = {}
    if info.settled is not None:
        made = ((head, syntax.parse(weight)) for head, weight in info.settled.tied)
        found = {head: weight for head, weight in made if isinstance(weight, cst.Attribute)}
        ctx.tied_heads[info.name] = found
        return found
    for small in _always_run(info):
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            pair = _pair(ctx, small.targets[0].target, small.value)
            if pair is not None:
                found[pair[0]] = pair[1]
    ctx.tied_heads[info.name] = found
    return found


def _always_run(info: ClassInfo) -> Iterator[cst.CSTNode]:
    """The statements that a constructor runs in any case, with those of ``self.tie_weights()``."""
    init = info.methods.get("__init__")
    for small in _top_level(init):
        yield small
        call = small.value if isinstance(small, cst.Expr) else None
        if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and not call.args:
            if isinstance(call.func.value, cst.Name) and call.func.value.value == "self":
                yield from _top_level(info.methods.get(call.func.attr.value))


def _top_level(method: FunctionInfo | None) -> Iterator[cst.CSTNode]:
    for statement in method.node.body.body if method is not None else ():
        if isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body


def _pair(
    ctx: Context, target: cst.CSTNode, value: cst.CSTNode
) -> tuple[str, cst.Attribute] | None:
    for one, other in ((target, value), (value, target)):
        if not (type(one) is cst.Attribute and type(other) is cst.Attribute):
            continue
        if one.attr.value != "weight" or other.attr.value != "weight":
            continue
        head, embed = ctx.kind(one.value), ctx.kind(other.value)
        if (
            isinstance(head, k.Module)
            and head.cls == "torch.nn.Linear"
            and isinstance(embed, k.Module)
            and embed.cls == "torch.nn.Embedding"
            and isinstance(one.value, cst.Attribute)
            and isinstance(one.value.value, cst.Name)
            and ("bias", False) in head.args
        ):
            return one.value.attr.value, other
    return None


def tie(rw: Rewriter, node: cst.Assign, target: cst.Attribute, value: cst.Attribute) -> Any:
    """Convert the statement that ties."""
    owner = rw.ctx.owner
    if owner is None:
        raise Failure(node, "API009", _REASON, "")
    heads = tied_heads(rw.ctx, owner)
    pair = _pair(rw.ctx, target, value)
    if pair is None or pair[0] not in heads:
        raise Failure(
            node,
            "API009",
            _REASON,
            "tie them at the top level of __init__ or of a method it calls, with a Linear without bias",
        )
    embed = rw.visit(pair[1].value)
    head = cst.Attribute(cst.Name("self"), cst.Name(pair[0]))
    return syntax.changed(node, targets=[syntax.changed(node.targets[0], target=head)], value=embed)


def head_of(rw: Rewriter, node: cst.CSTNode) -> str | None:
    """The name of the tied head that an expression ``self.head`` means, None for others."""
    if type(node) is not cst.Attribute or not rw.ctx.is_self(node.value):
        return None
    owner = rw.ctx.owner
    if owner is None:
        return None
    name = node.attr.value
    return name if any(name in tied_heads(rw.ctx, c) for c in owner.lineage()) else None


def assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """The Linear that is tied later is never built; its line goes."""
    if len(node.targets) != 1 or head_of(rw, node.targets[0].target) is None:
        return None
    if rw.ctx.facts.callee(node.value) == "torch.nn.Linear":  # type: ignore[arg-type]
        return []
    return None


def call(rw: Rewriter, node: cst.Call) -> Any:
    """``self.head(x)`` → ``self.head.attend(x)``."""
    if head_of(rw, node.func) is None:
        return None
    args = [syntax.changed(a, value=rw.visit(a.value)) for a in node.args]
    return syntax.changed(node, func=cst.Attribute(node.func, cst.Name("attend")), args=args)


def attribute(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.head.weight`` is the embedding's table."""
    if node.attr.value == "weight" and head_of(rw, node.value) is not None:
        return syntax.substitute(syntax.parse("__a__.embedding[...]"), {"__a__": node.value})
    return None
