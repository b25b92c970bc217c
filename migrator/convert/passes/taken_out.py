"""Numbers that are taken out of tensors and only computed with: ``float(x)``, ``x.item()``, ``max(int(n), 1)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.passes.zero_dims import names_half
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._numbers import computed_with, counts_up, extremes


@converts(cst.Call, called=("builtins.max", "builtins.min"))
def extreme(rw: Rewriter, node: cst.Call) -> Any:
    """``max(x.sum(), 1)`` and ``max(int(m.sum()), 1)``, where it is only computed with: what Python would choose."""
    facts = rw.ctx.facts
    sides = extremes(node, facts.callee)
    if sides is None or not rw.ctx.source.index.has(node):
        return None

    def is_tensor(other: cst.BaseExpression) -> bool:
        return isinstance(facts.kind(other), k.Tensor)

    taken = [_number(rw, one) if isinstance(one, cst.Call) else None for one in sides]
    if not any(map(is_tensor, sides)) and not any(one is not None for one in taken):
        return None
    if not computed_with(node, rw.ctx.source.index.around(node), is_tensor, facts.callee):
        return None
    largest = facts.callee(node) == "builtins.max"
    args = [cst.Arg(rw.visit(one)) for one in sides]
    counts = all(
        isinstance(one, cst.Integer)
        or getattr(facts.kind(one), "dtype", None) == "int"
        or (isinstance(one, cst.Call) and _counts(rw, one))
        for one in sides
    )
    if counts:  # nothing to differentiate, and no NaN
        rw.ctx.helpers.use("jnp")
        return syntax.with_args(
            cst.Call(syntax.parse("jnp.maximum" if largest else "jnp.minimum")), args
        )
    name = rw.ctx.helpers.need(
        module_file("rules.compat.pointwise"), "larger" if largest else "smaller"
    )
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _counts(rw: Rewriter, node: cst.Call) -> bool:
    """Whether a number is taken out of a tensor of integers."""
    x = _tensor_of(rw, node)
    return x is not None and getattr(rw.ctx.facts.kind(x), "dtype", None) == "int"


def _tensor_of(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``x`` of ``int(x)``, ``float(x)`` and ``x.item()``."""
    name = rw.ctx.facts.callee(node)
    if name in ("builtins.float", "builtins.int") and len(node.args) == 1:
        return None if node.args[0].keyword else node.args[0].value
    if name == "Tensor.item" and isinstance(node.func, cst.Attribute):
        return node.func.value
    return None


@converts(cst.Call, called=("builtins.float", "builtins.int", "Tensor.item"))
def counted(rw: Rewriter, node: cst.Call) -> Any:
    """``float(n)`` of an integer tensor, where it is only computed with → ``1.0 * n``, whose dtype is as weak.

    ``x.item()`` of a float tensor is x without its gradient, in files that name no type of fewer digits."""
    found = _number(rw, node)
    if found is None:
        return None
    x, wanted = found
    for module in ("lax", "jnp"):
        if f"{module}." in wanted:
            rw.ctx.helpers.use(module)
    return syntax.substitute(syntax.parse(wanted), {"__x__": rw.visit(x)})


def _number(rw: Rewriter, node: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """The tensor that a number is taken out of, and what is written for the number; None where it has to be one."""
    facts = rw.ctx.facts
    name, x = facts.callee(node), _tensor_of(rw, node)
    kind = facts.kind(x) if x is not None else None
    if x is None or not isinstance(kind, k.Tensor) or not rw.ctx.source.index.has(node):
        return None
    made_float = name == "builtins.float"
    counts = kind.dtype == "int"
    if not counts and rw.ctx.concrete:
        return None
    if counts and not made_float and rw.ctx.concrete:
        return None
    if not counts and (kind.dtype not in ("float", None) or names_half(rw.ctx)):
        return None

    def is_tensor(other: cst.BaseExpression) -> bool:
        return isinstance(facts.kind(other), k.Tensor)

    if not computed_with(node, rw.ctx.source.index.around(node), is_tensor, facts.callee):
        return None
    number = "__x__" if kind.rank == 0 else "__x__.reshape(())"
    if name == "builtins.int" and not counts:
        number = f"jnp.trunc({number})"
    wanted = f"1.0 * {number}" if made_float and kind.dtype != "float" else number
    return x, wanted if counts else f"lax.stop_gradient({wanted})"


@converts(cst.Call, called=("Tensor.tolist",))
def counted_up(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.arange(1, x.dim()).tolist()`` → ``list(range(1, x.ndim))``"""
    facts = rw.ctx.facts
    bounds = counts_up(node, facts.callee, lambda one: k.scalar_type(facts.kind(one)) == "int")
    if bounds is None:
        return None
    numbers = syntax.with_args(cst.Call(cst.Name("range")), [rw.visit(a) for a in bounds])
    return cst.Call(cst.Name("list"), [cst.Arg(numbers)])
