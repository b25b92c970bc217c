"""``torch.tensor([a, b])`` of tensors: torch takes each for one number, also one of shape (1,) or (1, 1)."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import levels
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_MAKING = frozenset(
    "torch.tensor torch.as_tensor torch.asarray torch.Tensor torch.FloatTensor torch.DoubleTensor "
    "torch.LongTensor torch.IntTensor Tensor.new_tensor".split()
)


_NUMBER_OF = frozenset(f"builtins.{name}" for name in "float int complex range".split())


def _taken(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether Python makes a number of a tensor: ``float(t)``, ``math.sqrt(t)``, ``items[:t]``."""
    above = ctx.source.index.parent(node)
    if isinstance(above, cst.Slice):
        return True
    if not isinstance(above, cst.Arg) or above.star or above.keyword is not None:
        return False
    name = ctx.facts.callee(ctx.source.index.parent(above)) or ""
    return name in _NUMBER_OF or name.startswith("math.")


def _of_numbers(ctx: Context) -> bool:
    return not {"float", "int", "math", "round", "range"}.isdisjoint(ctx.words)


@converts(
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.IfExp,
    when=_of_numbers,
)
def python_number(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """``float(t)`` → ``float(t.item())`` of a tensor that may have axes, where values are known."""
    ctx = rw.ctx
    kind, key = ctx.kind(node), ("python_number", node)
    if not isinstance(kind, k.Tensor) or kind.rank == 0 or key in ctx.asking:
        return None
    if not ctx.in_init or not ctx.source.index.has(node) or not _taken(ctx, node):
        return None
    made = rw.visit_for(key)
    return syntax.substitute(syntax.parse("__a__.item()"), {"__a__": made})


def _asked(ctx: Context) -> bool:
    return not {"tensor", "as_tensor", "Tensor", "FloatTensor", "new_tensor"}.isdisjoint(ctx.words)


@converts(
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BinaryOperation,
    cst.UnaryOperation,
    when=_asked,
)
def number(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """``[a, b]`` → ``[a.reshape(()), b.reshape(())]`` where they may have axes."""
    ctx = rw.ctx
    kind, key = ctx.kind(node), ("single_numbers", node)
    if not isinstance(kind, (k.Tensor, k.Sequence, k.Tuple)) or key in ctx.asking:
        return None
    if not ctx.source.index.has(node):
        return None
    if isinstance(kind, k.Tensor):
        if kind.rank == 0 or not _is_element(ctx, node):
            return None
    elif not any(_has_axes(part) for part in levels(kind)):
        return None
    elif not _is_data(ctx, node) and not _is_element(ctx, node):
        return None
    made = rw.visit_for(key)
    if isinstance(kind, k.Tensor):
        return syntax.substitute(syntax.parse("__a__.reshape(())"), {"__a__": made})
    helper = ctx.helpers.need(module_file("rules.compat.data"), "single_numbers")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(made)])


def _has_axes(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and kind.rank != 0


def _is_element(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is an element of a list, or of lists within it, that a tensor is made of."""
    around = ctx.source.index.around(node)
    above = around[-1]
    if isinstance(above, (cst.ListComp, cst.GeneratorExp)):
        return above.elt is node and _is_data(ctx, above)
    if not isinstance(above, cst.Element):
        return False
    outer: cst.CSTNode = around[-2]
    while isinstance(outer, (cst.List, cst.Tuple)):
        if _is_data(ctx, outer):
            return True
        parent = ctx.source.index.parent(outer)
        outer = ctx.source.index.parent(parent) if isinstance(parent, cst.Element) else parent
    return False


def _is_data(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is what ``torch.tensor`` makes a tensor of."""
    item = ctx.source.index.parent(node)
    if not isinstance(item, cst.Arg) or item.star:
        return False
    call = ctx.source.index.parent(item)
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) not in _MAKING:
        return False
    if item.keyword is not None:
        return item.keyword.value in ("data", "obj")
    return call.args[0] is item
