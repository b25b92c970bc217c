"""Whole numbers beyond 32 bits beside tensors: a float beside floats, as in torch, and a finding beside integers."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.large import large_numbers
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_FILLED = frozenset(
    "masked_fill masked_fill_ fill_ full full_like new_full clamp clamp_ clamp_min clamp_max clip clip_ where "
    "add add_ sub sub_ mul mul_ div div_ true_divide maximum minimum pow".split()
)
"""What takes a number for one of the tensor's elements."""
_DIVIDING = frozenset("div div_ true_divide".split())
_COMPARED = frozenset("eq ne lt le gt ge equal".split())
_MADE = frozenset("tensor as_tensor full arange scalar_tensor LongTensor IntTensor".split())


def _has_large(ctx: Context) -> bool:
    return bool(large_numbers(ctx).written)


@converts(cst.Integer, cst.UnaryOperation, cst.BinaryOperation, cst.Call, when=_has_large)
@converts(cst.Name, cst.Attribute, cst.Subscript)
def beside_tensor(rw: Rewriter, node: Any) -> Any:
    """``scores * (-2**32 + 1)``: jnp takes no whole number beyond 32 bits, whatever the array's dtype is."""
    tree = rw.ctx.source.index
    found = large_numbers(rw.ctx)
    if node in rw.ctx.as_float or not tree.has(node) or not found.holds(node):
        return None
    parent = tree.around(node)[-1]
    if isinstance(parent, cst.Arg):
        return _argument(rw, node)
    if isinstance(parent, cst.ComparisonTarget):
        parent = tree.around(node)[-2]
    if isinstance(parent, cst.BinaryOperation):
        other = parent.right if parent.left is node else parent.left
    elif isinstance(parent, cst.Comparison) and len(parent.comparisons) == 1:
        right = parent.comparisons[0].comparator
        other = right if parent.left is node else parent.left
    elif isinstance(parent, cst.AugAssign) and parent.value is node:
        other = parent.target
    else:
        return None
    kind = rw.ctx.kind(other)
    if not isinstance(kind, k.Tensor):
        return None
    divides = isinstance(getattr(parent, "operator", None), (cst.Divide, cst.DivideAssign))
    return _fitting(rw, node, other, "float" if divides else kind.dtype)


def _argument(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """``x.masked_fill(mask, -10**10)``, ``torch.where(mask, x, 2**40)``."""
    call = rw.ctx.source.index.around(node)[-2]
    name = rw.ctx.facts.callee(call) or "" if isinstance(call, cst.Call) else ""
    short = name.rpartition(".")[2]
    takes = short in _FILLED or short in _COMPARED
    if not takes or not name.startswith(("torch.", "Tensor.")) or not isinstance(call, cst.Call):
        return None
    other = _beside(call, node, name)
    if other is None or not isinstance(rw.ctx.kind(other), k.Tensor):
        return None
    dtype = _dtype(rw, call) if short not in _COMPARED else None
    dtype = dtype or _dtype(rw, other)
    return _fitting(rw, node, other, "float" if short in _DIVIDING else dtype)


def _beside(call: cst.Call, node: cst.BaseExpression, name: str) -> cst.BaseExpression | None:
    """The tensor whose elements a number given to a call is like."""
    if name.startswith("Tensor.") and isinstance(call.func, cst.Attribute):
        return call.func.value
    given = [a.value for a in call.args if a.value is not node]
    if name == "torch.where":
        given = given[1:]
    return given[0] if given else None


def _dtype(rw: Rewriter, node: cst.BaseExpression) -> str | None:
    kind = rw.ctx.kind(node)
    return kind.dtype if isinstance(kind, k.Tensor) else None


@converts(cst.Call, when=_has_large)
def made_of(rw: Rewriter, node: cst.Call) -> None:
    """``torch.tensor([1, 2**40])`` has 64 bits in torch."""
    name = rw.ctx.facts.callee(node) or ""
    if not name.startswith("torch.") or name.rpartition(".")[2] not in _MADE:
        return
    found = large_numbers(rw.ctx)
    large = next((a.value for a in node.args if found.holds(a.value)), None)
    if large is not None and _dtype(rw, node) in ("int", None):
        raise _too_large(large)


def _too_large(node: cst.CSTNode) -> Failure:
    advice = 'keep to 32 bits (uint32 for hashes), or jax.config.update("jax_enable_x64", True)'
    return Failure(node, "DTY004", "an integer beyond 32 bits meets integers of 32 bits", advice)


def _fitting(
    rw: Rewriter, node: cst.BaseExpression, other: cst.BaseExpression, dtype: str | None
) -> cst.BaseExpression:
    """The number as it meets an array of a dtype."""
    if dtype in ("int", "bool"):
        raise _too_large(node)
    rw.ctx.as_float.add(node)
    try:
        value = syntax.unparenthesized(rw.visit(node))
    finally:
        rw.ctx.as_float.discard(node)
    if dtype is not None:
        return syntax.with_args(cst.Call(cst.Name("float")), [cst.Arg(value)])
    other = _model(rw, other)
    if not syntax.is_cheap(other):
        advice = "give the tensor a name, or write the number as a float"
        raise Failure(
            node, "DTY004", "an integer beyond 32 bits meets what may be integers", advice
        )
    name = rw.ctx.helpers.need(module_file("rules.compat.numbers"), "as_element")
    args = [cst.Arg(value), cst.Arg(rw.visit(other))]
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _model(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """The tensor that ``torch.ones_like(x)`` has its dtype from."""
    name = rw.ctx.facts.callee(node) or "" if isinstance(node, cst.Call) else ""
    if name.startswith("torch.") and name.endswith("_like") and isinstance(node, cst.Call):
        if len(node.args) == 1 and not node.args[0].star:
            return node.args[0].value
    return node


def _has_factor(ctx: Context) -> bool:
    numbers = ctx.source.index.of_type(cst.Integer)
    return any(len(one.value) > 4 and one.evaluated_value >= _FACTOR for one in numbers)


_FACTOR = 2**16
"""Products of whole numbers with what is larger soon have more than 32 bits."""


@converts(cst.BinaryOperation, when=_has_factor)
def hash_of(rw: Rewriter, node: cst.BinaryOperation) -> None:
    """``(ids * 1000003 + 7) % 97``: torch has 64 bits for the product.

    Raises:
      Failure: the rest of a division depends on all of them.
    """
    ctx = rw.ctx
    if not isinstance(node.operator, cst.Multiply) or not ctx.source.index.has(node):
        return
    for number, other in ((node.left, node.right), (node.right, node.left)):
        told, kind = ctx.kind(number), ctx.kind(other)
        if not isinstance(told, k.Const) or not isinstance(told.value, int):
            continue
        if abs(told.value) < _FACTOR or not isinstance(kind, k.Tensor):
            continue
        if kind.dtype == "int" and _takes_rest(ctx, node):
            raise _too_large(node)


_RESTS = frozenset("remainder remainder_ fmod fmod_ bitwise_xor bitwise_xor_".split())


def _takes_rest(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether the function around a place takes the rest of a division, or mixes bits."""
    around = ctx.source.index.around(node)
    scope = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    below = ctx.source.index.below(scope) if scope is not None else ()
    for call in ctx.source.index.within(scope, cst.Call) if scope is not None else ():
        if (ctx.facts.callee(call) or "").rpartition(".")[2] in _RESTS:
            return True
    mixing = (cst.Modulo, cst.ModuloAssign, cst.BitXor, cst.BitXorAssign)
    return any(isinstance(getattr(n, "operator", None), mixing) for n in below)
