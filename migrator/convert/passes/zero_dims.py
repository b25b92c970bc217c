"""A tensor of no dimensions beside one that has some: torch lets the other's dtype win, JAX takes the wider one."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.surroundings import names_one
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._numbers import HALF

_ARITHMETIC = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.FloorDivide: "floor_divide",
    cst.Modulo: "remainder",
    cst.Power: "power",
}


@converts(cst.BinaryOperation)
def beside_a_narrow_tensor(rw: Rewriter, node: cst.BinaryOperation) -> Any:
    """``y * self.scale`` of a y in half precision stays in it: ``y * beside(y, self.scale)``.

    All floats of a file that names no narrow type are of one."""
    ctx = rw.ctx
    if type(node.operator) not in _ARITHMETIC or not names_half(ctx):
        return None
    left, right = (_float_rank(ctx, side) for side in (node.left, node.right))
    if (left == 0) == (right == 0) or "none" in (left, right):
        return None
    number, other = (node.left, node.right) if left == 0 else (node.right, node.left)
    state = any(getattr(ctx.kind(one), "role", "") for one in syntax.walk(number))
    if not state and set(syntax.names(number)) <= set(syntax.names(other)):
        return None  # x / x.max() has one dtype
    file = module_file("rules.compat.dtypes")
    a, b = (rw.visit(side) for side in (node.left, node.right))
    if syntax.is_cheap(other):
        made = syntax.parse(f"{ctx.helpers.need(file, 'beside')}(__x__, __n__)")
        number, other = (a, b) if left == 0 else (b, a)
        fitting = syntax.substitute(made, {"__x__": other, "__n__": number})
        return syntax.changed(
            node,
            **{"left" if left == 0 else "right": fitting, "right" if left == 0 else "left": other},
        )
    ctx.helpers.use("jnp")
    function = f"jnp.{_ARITHMETIC[type(node.operator)]}"
    made = syntax.parse(f"{ctx.helpers.need(file, 'in_torch_dtype')}({function}, __a__, __b__)")
    return syntax.substitute(made, {"__a__": a, "__b__": b})


def names_half(ctx: Context) -> bool:
    """Whether a file names a float type of fewer digits than float32."""
    if ctx.half is None:
        ctx.half = names_one(ctx, HALF)
    return ctx.half


_ELEMENTWISE = frozenset("abs clamp exp log neg relu sigmoid softplus sqrt square tanh".split())


def _float_rank(
    ctx: Context, node: cst.BaseExpression, seen: frozenset[str] = frozenset()
) -> int | str | None:
    """The number of dimensions of a float tensor, None where it is not known; "none" for anything else.

    A number that turns out to have dimensions is left to the run, which looks."""
    kind = ctx.kind(node)
    if not isinstance(kind, k.Tensor) or kind.dtype not in ("float", None):
        return "none"
    if kind.rank is not None:
        return kind.rank
    held = isinstance(node, cst.Attribute) and isinstance(ctx.kind(node.value), k.Module)
    if held and not kind.role:
        return 0  # ``self.scale = normal.icdf(p)``: neither a parameter nor a buffer, which show their dimensions
    return 0 if _one_number(ctx, node, seen) else None


def _one_number(ctx: Context, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
    """``self.scale.exp()`` of a parameter without dimensions, and a name for it."""
    if isinstance(node, cst.Call):
        callee = ctx.facts.callee(node) or ""
        method = callee.startswith("Tensor.") and isinstance(node.func, cst.Attribute)
        given = [node.func.value] if method else [a.value for a in node.args[:1]]  # type: ignore[attr-defined]
        if callee.rpartition(".")[2] not in _ELEMENTWISE:
            return False
        return bool(given) and _float_rank(ctx, given[0], seen) == 0
    if not isinstance(node, cst.Name) or ctx.frame is None:
        return False
    if node.value in seen:
        return True  # names that are made of one another are what else they are made of
    info = ctx.frame.info
    written = [
        one.value
        for one in ctx.facts.tree.within(info.node.body, cst.Assign)
        if any(syntax.names(target.target).get(node.value) for target in one.targets)
    ]
    if not written or node.value in info.params:
        return False
    return all(_float_rank(ctx, value, seen | {node.value}) == 0 for value in written)
