"""``torch.arange(0, n, out=torch.LongTensor(n))``: a result that goes into a tensor which is made for it."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

_MADE = frozenset(
    f"torch.{cuda}{name}" for cuda in ("", "cuda.") for name in ("LongTensor", "FloatTensor")
)
_LIKE = frozenset(("torch.empty", "torch.empty_like", "Tensor.new", "Tensor.new_empty"))
_CASTS = {"Tensor.long": "int", "Tensor.float": "float"}
_PLACED = frozenset(("Tensor.cuda", "Tensor.cpu"))
_OTHER_FLOATS = frozenset(
    "double float64 half float16 bfloat16 DoubleTensor HalfTensor BFloat16Tensor set_default_dtype "
    "set_default_tensor_type autocast".split()
)
_COUNTING = ("torch.arange", "torch.range")


def fresh_out(ctx: Context, call: cst.Call) -> cst.Arg | None:
    """The argument ``out=`` that changes nothing: a new tensor of the dtype that the result has without it."""
    found = [a for a in call.args if a.keyword is not None and a.keyword.value == "out"]
    if len(found) != 1 or not isinstance(found[0].value, cst.Call):
        return None
    dtype = _dtype(ctx, found[0].value)
    if dtype is None:
        return None
    given = [a for a in call.args if a is not found[0]]
    if ctx.facts.callee(call) in _COUNTING:
        if any(a.star or a.keyword is not None for a in given) or dtype != "int":
            return None
        sizes = _sizes(ctx, found[0].value)
        whole = all(
            k.scalar_type(ctx.kind(a.value)) == "int" or syntax.code(a.value) in sizes
            for a in given
        )
        return found[0] if whole and ctx.facts.callee(call) == "torch.arange" else None
    kind = ctx.kind(call)
    float32 = dtype == "float" and _OTHER_FLOATS.isdisjoint(ctx.words)
    return found[0] if float32 and isinstance(kind, k.Tensor) and kind.dtype == "float" else None


def _sizes(ctx: Context, made: cst.Call) -> set[str]:
    """The names that a new tensor is made by, which are ints where numbers are asked for."""
    if ctx.facts.callee(made) not in _MADE or len(made.args) != 1:
        return set()
    value = made.args[0].value
    plain = isinstance(value, cst.Name) and isinstance(ctx.kind(value), (k.Scalar, k.Unknown))
    return {syntax.code(value)} if plain else set()


def _dtype(ctx: Context, made: cst.BaseExpression) -> str | None:
    """The dtype of a tensor that an expression makes without a value of its own; None for others."""
    if not isinstance(made, cst.Call):
        return None
    name = ctx.facts.callee(made) or ""
    if name in _MADE:
        return "int" if name.endswith("LongTensor") else "float"
    inner = made.func.value if isinstance(made.func, cst.Attribute) else None
    if name in _CASTS and not made.args and inner is not None:
        return _CASTS[name] if _dtype(ctx, inner) is not None else None
    if name in _PLACED and inner is not None:
        return _dtype(ctx, inner)
    kind = ctx.kind(made)
    return kind.dtype if name in _LIKE and isinstance(kind, k.Tensor) else None
