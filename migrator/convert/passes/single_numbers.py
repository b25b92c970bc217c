"""``torch.tensor([a, b])`` of tensors: torch takes each for one number, also one of shape (1,) or (1, 1)."""

from __future__ import annotations

from collections.abc import Iterator
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


@converts(
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.IfExp,
    when=lambda ctx: bool(_taken(ctx)),
)
def number(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """``[a, b]`` → ``[a.reshape(()), b.reshape(())]``; ``float(t)`` → ``float(t.item())`` where values are known."""
    ctx, key = rw.ctx, ("single_numbers", node)
    template = _taken(ctx).get(node)
    if template is None or key in ctx.asking or (template == _ITEM and not ctx.in_init):
        return None
    made = rw.visit_for(key)
    if template:
        ctx.helpers.use("jnp")
        return syntax.substitute(syntax.parse(template), {"__a__": made})
    helper = ctx.helpers.need(module_file("rules.compat.data"), "single_numbers")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(made)])


_ITEM = "__a__.item()"


def _taken(ctx: Context) -> dict[cst.CSTNode, str]:
    """What is taken for a number and may have axes, looked for once, and how it is written; empty for the helper."""
    if ctx.single_numbers is None:
        found: dict[cst.CSTNode, str] = {}
        for call in ctx.source.index.of_type(cst.Call):
            name = ctx.facts.callee(call) or ""
            if name in _MAKING:
                found.update(_elements(ctx, _data(call), inside=False))
            elif name in _NUMBER_OF or name.startswith("math."):
                plain = (a.value for a in call.args if not a.star and a.keyword is None)
                found.update((one, _ITEM) for one in plain if _has_axes(ctx.kind(one)))
        for bounds in ctx.source.index.of_type(cst.Slice):
            parts = (bounds.lower, bounds.upper, bounds.step)
            found.update((one, _ITEM) for one in parts if one and _has_axes(ctx.kind(one)))
        ctx.single_numbers = found
    return ctx.single_numbers


def _has_axes(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and kind.rank != 0


def _data(call: cst.Call) -> cst.BaseExpression | None:
    """What ``torch.tensor`` makes a tensor of."""
    for place, item in enumerate(call.args):
        named = item.keyword is not None and item.keyword.value in ("data", "obj")
        if named or (place == 0 and item.keyword is None and not item.star):
            return item.value
    return None


def _elements(
    ctx: Context, node: cst.BaseExpression | None, *, inside: bool
) -> Iterator[tuple[cst.CSTNode, str]]:
    """The tensors in a list, and in lists within it, that may have axes."""
    if isinstance(node, (cst.List, cst.Tuple)):
        for element in node.elements:
            yield from _elements(ctx, element.value, inside=True)
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        yield from _elements(ctx, node.elt, inside=True)
    elif node is not None:
        kind = ctx.kind(node)
        if inside and _has_axes(kind):
            yield node, "jnp.reshape(__a__, ())" if kind == k.TENSOR else "__a__.reshape(())"
        elif isinstance(kind, (k.Sequence, k.Tuple)) and any(map(_has_axes, levels(kind))):
            yield node, ""
