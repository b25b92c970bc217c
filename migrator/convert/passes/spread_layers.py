"""``[*net]``, ``layers += net[2:]``, ``first, *rest = net``: torch goes over the layers of a Sequential, Flax's has no iterator."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import containers
from migrator.convert.passes.containers import is_sequential, layers_of
from migrator.convert.rewriter import Rewriter, converts


def _has_sequentials(ctx: Context) -> bool:
    return "Sequential" in ctx.words


_CALLING = frozenset({"functools.reduce"}) | frozenset(
    f"itertools.{name}" for name in "repeat starmap filterfalse takewhile dropwhile".split()
)
"""What calls its first argument, or gives back that itself."""


@converts(cst.StarredElement, when=_has_sequentials)
def starred(rw: Rewriter, node: cst.StarredElement) -> Any:
    """``[*net]`` → ``[*net.layers]``."""
    if not is_sequential(rw, node.value):
        return None
    return syntax.changed(node, value=layers_of(rw, node.value))


@converts(cst.AugAssign, when=_has_sequentials)
def added(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``layers += net[2:]`` of a list → ``layers += net.layers[2:]``.

    Raises:
      Failure: the layers of a Sequential get more.
    """
    if not isinstance(node.operator, cst.AddAssign) or not is_sequential(rw, node.value):
        return None
    if is_sequential(rw, node.target):
        what = "it is not known whether the children of what gains some here have names"
        raise Failure(node, "API007", what, "add them where the Sequential is made")
    return syntax.changed(node, target=rw.visit(node.target), value=layers_of(rw, node.value))


@converts(cst.Call, when=_has_sequentials)
def extended(rw: Rewriter, node: cst.Call) -> Any:
    """``layers.extend(net)`` of a list → ``layers.extend(net.layers)``."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "extend" or len(node.args) != 1:
        return None
    only = node.args[0]
    if only.star or not is_sequential(rw, only.value) or is_sequential(rw, func.value):
        return None
    arg = syntax.changed(only, value=layers_of(rw, only.value))
    return syntax.changed(node, func=rw.visit(func), args=[arg])


@converts(cst.Call, when=_has_sequentials)
def gone_over(rw: Rewriter, node: cst.Call) -> Any:
    """``functools.reduce(f, net, x)``, ``itertools.chain(a, b)`` → what is in the layers."""
    name = rw.ctx.facts.qualified_name(node.func) or rw.ctx.facts.callee(node) or ""
    if name != "functools.reduce" and not name.startswith("itertools."):
        return None
    called = 1 if name == "itertools.accumulate" else 0 if name in _CALLING else None
    going = [a for place, a in enumerate(node.args) if place != called and not a.star]
    if not any(is_sequential(rw, a.value) and a.keyword is None for a in going):
        return None
    return containers.gone_over(rw, node, called)


@converts(cst.From, when=_has_sequentials)
def given_on(rw: Rewriter, node: cst.From) -> Any:
    """``yield from net`` → ``yield from net.layers``."""
    return (
        syntax.changed(node, item=layers_of(rw, node.item))
        if is_sequential(rw, node.item)
        else None
    )


@converts(cst.BinaryOperation, when=_has_sequentials)
def joined(rw: Rewriter, node: cst.BinaryOperation) -> Any:
    """``head + tail`` of two → ``nnx.Sequential(*head.layers, *tail.layers)``, numbered anew as in torch.

    Raises:
      Failure: what becomes of one that is multiplied, or of one and something else.
    """
    sides = (node.left, node.right)
    of_layers = [is_sequential(rw, one) for one in sides]
    if not any(of_layers):
        return None
    if not all(of_layers) or not isinstance(node.operator, cst.Add):
        what = "an operator makes another Sequential of one"
        raise Failure(node, "API007", what, "write down its layers: nn.Sequential(*a, *b)")
    rw.ctx.helpers.use("nnx")
    args = [cst.Arg(layers_of(rw, one), star="*") for one in sides]
    return syntax.with_args(cst.Call(syntax.parse("nnx.Sequential")), args)


@converts(cst.Assign, when=_has_sequentials)
def taken_apart(rw: Rewriter, node: cst.Assign) -> Any:
    """``first, *rest = net`` → ``first, *rest = net.layers``."""
    apart = all(isinstance(one.target, (cst.Tuple, cst.List)) for one in node.targets)
    if not apart or not is_sequential(rw, node.value):
        return None
    targets = [rw.visit(one) for one in node.targets]
    return syntax.changed(node, targets=targets, value=layers_of(rw, node.value))
