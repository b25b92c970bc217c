"""``self.act.negative_slope`` where ``self.act`` is a layer of torch's or something else: what a layer may not keep.

Of what is a layer for certain, and of which class, ``layer_classes`` asks. Here it is not: ``self.act = torch.tanh`` in one
branch and ``nn.LeakyReLU(0.2)`` in the other. What the layer becomes has no such argument, a default given to ``getattr``
would be taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.layer_classes import is_asked_for_class, keeps_argument
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules import definitions
from rules.below import children

_ANY = "torch.nn.Module"
_ELSEWHERE = frozenset({"weight", "bias", "device", "dtype"})
"""What other passes ask of layers, or tensors have too."""


@converts(cst.Attribute, of=(k.Unknown, k.Module, k.Function))
def argument(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.act.negative_slope``."""
    name = node.attr.value
    if name not in _arguments() or not rw.ctx.facts.tree.has(node):
        return None
    outer = rw.ctx.facts.tree.around(node)[-1]
    if isinstance(outer, cst.AssignTarget) or (isinstance(outer, cst.Call) and outer.func is node):
        return None
    _check(rw.ctx, node, node.value, name)
    return None


def check_written(ctx: Context, node: cst.Attribute) -> None:
    """``self.drop.p = 0.5`` where that may be a layer: what it becomes would never look at its new attribute.

    Raises:
      Failure: one of the layers that it may be does not keep the argument under its name.
    """
    if node.attr.value in _arguments() and ctx.facts.tree.has(node):
        _check(ctx, node, node.value, node.attr.value)


@converts(cst.Call, called=("builtins.getattr", "builtins.hasattr"))
def asked(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(self.act, "negative_slope", 0.01)``, ``hasattr(self.act, "negative_slope")``."""
    if rw.ctx.facts.callee(node) not in ("builtins.getattr", "builtins.hasattr"):
        return None
    if len(node.args) < 2 or not rw.ctx.facts.tree.has(node):
        return None
    name = rw.ctx.kind(node.args[1].value)
    if isinstance(name, k.Const) and name.value in _arguments():
        _check(rw.ctx, node, node.args[0].value, str(name.value))
    return None


def _check(ctx: Context, node: cst.CSTNode, owner: cst.BaseExpression, name: str) -> None:
    """Raise a Failure where ``owner`` may be a layer whose argument ``name`` is not kept."""
    kind = ctx.kind(owner)
    if isinstance(kind, k.Module) and kind.cls != _ANY:
        return
    if not isinstance(kind, (k.Module, k.Unknown, k.Function)) or is_asked_for_class(ctx, owner):
        return
    layers = _may_be(ctx, owner) - {_ANY}
    if not layers and isinstance(kind, k.Module) and isinstance(owner, cst.Name):
        layers = _made_here(ctx) if name not in _WITHOUT_EFFECT else layers  # one of a walk: any
    lost = sorted(one for one in layers if not keeps_argument(one, name))
    if lost:
        raise Failure(
            node,
            "API001",
            f"`{name}` of {' and '.join(lost)} is not kept by what it becomes",
            "keep the argument in an attribute of its own, or hand it to the constructor",
        )


_WITHOUT_EFFECT = frozenset({"inplace"})
"""Arguments that change no number, so that it does not matter whether a walk over all modules finds them."""


def _made_here(ctx: Context) -> set[str]:
    """torch's layers that the file makes anywhere, which a walk over the modules may come to."""
    calls = ctx.facts.tree.of_type(cst.Call)
    kinds = [ctx.kind(one) for one in calls]
    found = {one.cls for one in kinds if isinstance(one, k.Module)}
    return {one for one in found if one.startswith("torch.nn.")} - {_ANY}


@cache
def _arguments() -> frozenset[str]:
    """The arguments of torch's layers, which torch keeps under their names."""
    every = (rule for rules in definitions.index("layer").values() for rule in rules)
    return frozenset(name for rule in every for name in rule.by_name) - _ELSEWHERE


def _may_be(ctx: Context, node: cst.BaseExpression) -> set[str]:
    """torch's layers that a value may be, by what its name is given anywhere in the file."""
    found: set[str] = set()
    known: set[str] = set()
    left: list[cst.CSTNode] = [node]
    while left:
        for one in _parts(ctx, left.pop()):
            kind = ctx.kind(one)
            for each in (kind, *kind.among) if isinstance(kind, k.Module) else ():
                found.update(c for c in each.cls.split("|") if c.startswith("torch.nn."))
            if not isinstance(one, (cst.Name, cst.Attribute)) or isinstance(kind, k.Tensor):
                continue
            word = _word(one)
            if word not in known:
                known.add(word)
                left += _given(ctx).get(word, ())
    return found


def _parts(ctx: Context, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What stands in an expression, without what a layer is given when it is called."""
    if isinstance(node, cst.Call) and isinstance(ctx.kind(node.func), k.Module):
        return
    if isinstance(node, cst.BaseExpression):
        yield node
    if isinstance(node, (cst.Attribute, cst.Lambda)):
        return  # what the attribute is given counts, not what has it
    for child in children(node):
        yield from _parts(ctx, child)


def _word(node: cst.Name | cst.Attribute) -> str:
    return node.value if isinstance(node, cst.Name) else node.attr.value


def _given(ctx: Context) -> dict[str, list[cst.CSTNode]]:
    """The names and attributes of a file → what each is given, and what functions of that name return."""
    if ctx.given_anywhere is None:
        made: dict[str, list[cst.CSTNode]] = {}
        for node in ctx.facts.tree.of_type(cst.Assign, cst.AnnAssign):
            for target in syntax.assigned_to(node):
                if isinstance(target, (cst.Name, cst.Attribute)) and node.value is not None:
                    made.setdefault(_word(target), []).append(node.value)
        for function in ctx.facts.tree.of_type(cst.FunctionDef):
            for one in ctx.facts.tree.within(function, cst.Return):
                if one.value is not None:
                    made.setdefault(function.name.value, []).append(one.value)
        ctx.given_anywhere = made
    return ctx.given_anywhere
