"""Initialisers that treat a Linear without bias and an embedding alike, whose matrix the two may share.

``if isinstance(m, (nn.Linear, nn.Embedding)): m.weight.data.normal_()`` draws such a matrix twice in torch, of which the
second draw stays; drawn once it has the same distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

_DRAWN = frozenset("normal_ uniform_ zero_ fill_".split())
_BOTH = {"torch.nn.Linear", "torch.nn.Embedding"}


def alike(ctx: Context) -> list[cst.CSTNode]:
    """The bodies of functions and loops of a file that go through the layers, and treat those two alike.

    Such a function is handed to ``apply``; such a loop goes through ``modules()``."""
    found: list[cst.CSTNode] = []
    for call in ctx.source.index.of_type(cst.Call):
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "apply":
            continue
        kind = ctx.kind(call.args[0].value) if len(call.args) == 1 else k.UNKNOWN
        info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        if info is None or info.settled is not None:
            continue
        names = [p.name.value for p in info.node.params.params][info.receivers :]
        if len(names) == 1 and _is_alike(ctx, info.node.body.body, names[0]):
            found += [info.node.body, call]
    for loop in ctx.source.index.of_type(cst.For):
        way = loop.iter
        named = isinstance(way, cst.Call) and isinstance(way.func, cst.Attribute)
        if named and way.func.attr.value == "modules" and isinstance(loop.target, cst.Name):
            if loop.orelse is None and _is_alike(ctx, loop.body.body, loop.target.value):
                found += [loop.body, way]
    return found


def _is_alike(ctx: Context, body: Sequence[cst.CSTNode], name: str) -> bool:
    return all(
        syntax.is_docstring(one) or (isinstance(one, cst.If) and _chain(ctx, one, name))
        for one in body
    )


def _chain(ctx: Context, node: cst.If, name: str) -> bool:
    """Whether the branches of an ``if`` are alike for both, and do the same when they run twice."""
    branch: cst.If | cst.Else | None = node
    while isinstance(branch, cst.If):
        first, *others = _operands(branch.test)
        asked = _asked(ctx, first, name)
        if asked is None:
            return False
        if asked >= _BOTH:
            return not others and all(_is_drawn(ctx, one, name) for one in branch.body.body)
        if "torch.nn.Embedding" in asked:
            return False
        if "torch.nn.Linear" in asked and not any(_asks_for_bias(one, name) for one in others):
            return False
        branch = branch.orelse
    return branch is None


def _operands(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        yield from _operands(test.left)
        yield test.right
    else:
        yield test


def _asked(ctx: Context, test: cst.BaseExpression, name: str) -> set[str] | None:
    """The classes of ``isinstance(m, …)``; None where one of them is not known, or a base of others."""
    if not isinstance(test, cst.Call) or len(test.args) != 2:
        return None
    if ctx.facts.callee(test) != "builtins.isinstance" or not _is(test.args[0].value, name):
        return None
    value = test.args[1].value
    every = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]
    found = set()
    for one in every:
        kind = ctx.kind(one)
        if not isinstance(kind, k.Class) or not kind.name or kind.name == "torch.nn.Module":
            return None
        if kind.name in ctx.facts.classes or kind.name.startswith("torch.nn."):
            found.add(kind.name)
        else:
            return None
    return found


def _asks_for_bias(test: cst.BaseExpression, name: str) -> bool:
    """``m.bias is not None``."""
    return syntax.code(test).strip("() ") == f"{name}.bias is not None"


def _is_drawn(ctx: Context, line: cst.CSTNode, name: str) -> bool:
    """``m.weight.data.normal_(…)``, ``nn.init.xavier_uniform_(m.weight)``: the old value does not count."""
    if isinstance(line, cst.If):
        first, *others = _operands(line.test)
        asked = _asked(ctx, first, name)
        never = asked == {"torch.nn.Linear"} and any(_asks_for_bias(one, name) for one in others)
        return never and line.orelse is None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else 0
    if syntax.is_docstring(line) or isinstance(small, cst.Pass):
        return True
    return draws(ctx, line, name)


def draws(ctx: Context, line: cst.CSTNode, name: str) -> bool:
    """Whether a line gives the whole weight of a layer new values, which do not rest on it."""
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else 0
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    weights = (f"{name}.weight", f"{name}.weight.data")
    args = list(call.args)
    if (ctx.facts.callee(call) or "").startswith("torch.nn.init."):
        drawn = bool(args) and syntax.code(args[0].value) in weights and not args[0].star
        args = args[1:]
    else:
        drawn = call.func.attr.value in _DRAWN and syntax.code(call.func.value) in weights
    return drawn and not any(name in syntax.names(a.value) for a in args)


def _is(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name
