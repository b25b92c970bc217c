"""A tensor of no dimensions beside one that has some: torch lets the other's dtype win, JAX takes the wider one."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes.listed_parameters import given
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

    All floats of a file that names no narrow type are of one, but for those that are float32 by what it says."""
    ctx = rw.ctx
    half = names_half(ctx)
    if type(node.operator) not in _ARITHMETIC or not (half or names_wide(ctx)):
        return None
    left, right = (_float_rank(ctx, side) for side in (node.left, node.right))
    if (left == 0) == (right == 0) or "none" in (left, right):
        return None
    number, other = (node.left, node.right) if left == 0 else (node.right, node.left)
    wide = _is_wide(ctx, number)
    if not half and (not wide or ctx.in_init):
        return None
    state = any(getattr(ctx.kind(one), "role", "") for one in syntax.walk(number))
    same = set(syntax.names(number)) <= set(syntax.names(other))
    if same and not state and not wide and not _casts(ctx, other):
        return None  # x / x.max() has one dtype
    plain = _plain_number(ctx, number) if _has_dimensions(ctx, other) else None
    if plain is not None:
        side = "left" if left == 0 else "right"
        beside = "right" if left == 0 else "left"
        if "math" in syntax.names(plain):
            ctx.helpers.use("math")
        return syntax.changed(node, **{side: rw.visit(plain), beside: rw.visit(other)})
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


def _casts(ctx: Context, node: cst.BaseExpression) -> bool:
    """``x.half()``: what is computed of a tensor has not got its dtype."""
    calls = (one for one in syntax.walk(node) if isinstance(one, cst.Call))
    return any((ctx.facts.callee(one) or "").removeprefix("Tensor.") in _CASTING for one in calls)


_CASTING = frozenset("half bfloat16 float double to type type_as".split())


def names_half(ctx: Context) -> bool:
    """Whether a file names a float type of fewer digits than float32."""
    if ctx.half is None:
        ctx.half = names_one(ctx, HALF)
    return ctx.half


_WIDE = frozenset({"float32", "float"})


def names_wide(ctx: Context) -> bool:
    """Whether a file names float32: ``torch.tensor(d, dtype=torch.float32)``, ``mask.sum().float()``."""
    return not ctx.words.isdisjoint(_WIDE)


def _is_wide(ctx: Context, node: cst.BaseExpression, depth: int = 3) -> bool:
    """Whether a number is float32 in every model, as what it is made of says; names of the function are followed."""
    for one in syntax.walk(node):
        if isinstance(one, cst.Call) and _says_wide(ctx, one):
            return True
        if isinstance(one, cst.Name) and depth and ctx.frame is not None:
            if any(_is_wide(ctx, value, depth - 1) for value in _written(ctx, one)):
                return True
    return False


def _says_wide(ctx: Context, call: cst.Call) -> bool:
    if (ctx.facts.callee(call) or "") == "Tensor.float":
        return True
    said = (arg.value for arg in call.args)
    return any(isinstance(s, cst.Attribute) and s.attr.value in _WIDE for s in said)


def _plain_number(ctx: Context, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``math.sqrt(d)`` for ``torch.sqrt(torch.tensor(d, dtype=torch.float32))``, and ``float(d)`` without the root."""
    root = False
    inner: cst.BaseExpression = node
    while isinstance(inner, cst.Call):
        callee, args = ctx.facts.callee(inner) or "", list(inner.args)
        if callee == "torch.tensor":
            known = args and k.scalar_type(ctx.kind(args[0].value)) in ("int", "float")
            if not known or not all(_leaves_value(one) for one in args[1:]):
                return None
            function = (
                cst.Attribute(cst.Name("math"), cst.Name("sqrt")) if root else cst.Name("float")
            )
            return cst.Call(function, [cst.Arg(args[0].value)])
        if isinstance(inner.func, cst.Attribute) and callee in ("Tensor.sqrt", "Tensor.float"):
            args = [cst.Arg(inner.func.value), *args]
        short = callee.rpartition(".")[2]
        if len(args) != 1 or short not in ("sqrt", "float") or (root and short == "sqrt"):
            return None
        root = root or short == "sqrt"
        inner = args[0].value
    return None


def _leaves_value(arg: cst.Arg) -> bool:
    """``dtype=torch.float32`` and ``device=…``: a whole number's type would cut a number off."""
    name = arg.keyword.value if arg.keyword is not None else ""
    wide = isinstance(arg.value, cst.Attribute) and arg.value.attr.value in _WIDE
    return name == "device" or (name == "dtype" and wide)


def _has_dimensions(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a tensor has a dimension at least: ``q @ k.transpose(-2, -1)``, a batched product."""
    kind = ctx.kind(node)
    if isinstance(kind, k.Tensor) and kind.rank:
        return True
    if isinstance(node, cst.BinaryOperation):
        matrix = isinstance(node.operator, cst.MatrixMultiply)
        has = _is_turned if matrix else _has_dimensions
        return any(has(ctx, side) for side in (node.left, node.right))
    if isinstance(node, cst.Name):
        value = _only_value(ctx, node)
        return value is not None and _has_dimensions(ctx, value)
    if not isinstance(node, cst.Call):
        return False
    name = (ctx.facts.callee(node) or "").rpartition(".")[2]
    if name == "matmul":
        whole = [one.value for one in node.args]
        return any(_is_turned(ctx, one) for one in [*whole, node.func])
    if name == "einsum" and node.args:
        told = ctx.facts.kind(node.args[0].value)
        text = str(told.value) if isinstance(told, k.Const) else ""
        return bool(text.partition("->")[2].strip(" ."))
    return name in ("bmm", "baddbmm")


def _is_turned(ctx: Context, node: cst.BaseExpression) -> bool:
    """``k.transpose(-2, -1)``, which has two axes at least."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    axes = {syntax.code(one.value) for one in node.args}
    name = (ctx.facts.callee(node) or "").rpartition(".")[2]
    return name in ("transpose", "swapaxes") and axes in ({"-1", "-2"}, {"1", "2"}, {"2", "3"})


def _only_value(ctx: Context, name: cst.Name) -> cst.BaseExpression | None:
    """What a name of the function is given, where nothing else binds it and it is not made of itself."""
    value = given(ctx, name)
    if value is None or len(_written(ctx, name)) != 1 or name.value in syntax.names(value):
        return None
    assert ctx.frame is not None
    body = ctx.frame.info.node.body
    for other in ctx.facts.tree.within(body, cst.For, cst.CompFor, cst.NamedExpr, cst.AsName):
        if name.value in syntax.names(getattr(other, "target", other)):
            return None
    return value


def _written(ctx: Context, name: cst.Name) -> list[cst.BaseExpression]:
    """What the assignments of the function give a name."""
    if ctx.frame is None or name.value in ctx.frame.info.params:
        return []
    return [
        one.value
        for one in ctx.facts.tree.within(ctx.frame.info.node.body, cst.Assign)
        if any(syntax.names(target.target).get(name.value) for target in one.targets)
    ]


_ELEMENTWISE = frozenset(
    "abs clamp clamp_min clamp_max exp log neg pow reciprocal relu rsqrt sigmoid softplus sqrt square tanh".split()
)


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
        if callee == "Tensor.float":  # of whole numbers too
            kind = ctx.kind(given[0])
            return isinstance(kind, k.Tensor) and kind.rank == 0
        if callee.rpartition(".")[2] not in _ELEMENTWISE:
            return False
        return bool(given) and _float_rank(ctx, given[0], seen) == 0
    if isinstance(node, cst.BinaryOperation):  # ``n + 1``
        sides = (node.left, node.right)
        plain = [k.scalar_type(ctx.kind(one)) is not None for one in sides]
        ranks = [_float_rank(ctx, one, seen) for one in sides]
        return 0 in ranks and all(p or r == 0 for p, r in zip(plain, ranks, strict=True))
    if not isinstance(node, cst.Name) or ctx.frame is None:
        return False
    if node.value in seen:
        return True  # names that are made of one another are what else they are made of
    written = _written(ctx, node)
    return bool(written) and all(
        _float_rank(ctx, value, seen | {node.value}) == 0 for value in written
    )
