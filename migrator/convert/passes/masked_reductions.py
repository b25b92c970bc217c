"""Means, sums and losses of what a mask selects, taken over the mask."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.masked import Masked, Reduction, is_unsure
from migrator.convert.rewriter import Rewriter, converts
from rules.definitions import module_file


def masked(ctx: Context) -> Masked:
    """The reductions over masks of a file, looked for once."""
    if ctx.masked is None:
        ctx.masked = Masked(ctx)
    assert isinstance(ctx.masked, Masked)
    return ctx.masked


@converts(cst.Assign, when=lambda ctx: bool(masked(ctx).named))
def named_selection(rw: Rewriter, node: cst.Assign) -> Any:
    """``active = x[m]`` → ``active = x``, of which all that is asked is asked over the mask."""
    for value in masked(rw.ctx).named.get(node, ()):
        _prepare(rw, value)
    return None


@converts(cst.Call, when=lambda ctx: bool(masked(ctx).reductions))
def masked_reduction(rw: Rewriter, node: cst.Call) -> Any:
    """``((x[m] - y[m]) ** 2).mean()`` → ``masked_mean(only_where(m, x - y) ** 2, m)``."""
    found = masked(rw.ctx).reductions.get(node)
    if found is None:
        return None
    for one in found.operands:
        _prepare(rw, one)
    parts = [rw.visit(one) for one in found.operands]
    if len(parts) == 1:
        name = rw.ctx.helpers.need(module_file("rules.compat.masks"), f"masked_{found.name}")
        return _told(found.unsure, _called(cst.Name(name), [*parts, rw.visit(found.mask)]))
    return _loss(rw, found, parts)


def _loss(rw: Rewriter, found: Reduction, parts: list[Any]) -> cst.Call:
    helper = "masked_class_loss" if found.of_classes else "masked_loss"
    name = rw.ctx.helpers.need(module_file("rules.compat.masks"), helper)
    file = "loss_layers" if found.name in ("mse_loss", "l1_loss") else "losses"
    loss = rw.ctx.helpers.need(module_file(f"rules.compat.{file}"), found.name)
    made = _called(cst.Name(name), [cst.Name(loss), *parts, rw.visit(found.mask)])
    for option in found.options:
        assert option.keyword is not None
        made = syntax.add_keyword(made, option.keyword.value, rw.visit(option.value))
    return _told(found.unsure, made)


def _told(unsure: bool, made: cst.Call) -> cst.Call:
    """What may be a mask or numbers of places has a dtype as soon as the port is traced, which tells."""
    return syntax.add_keyword(made, "or_places", cst.Name("True")) if unsure else made


def _prepare(rw: Rewriter, value: cst.BaseExpression) -> None:
    """Note what becomes of the selections in a value, and where its gradient is stopped."""
    found, everywhere = masked(rw.ctx), rw.ctx.everywhere
    look = found.within[value]
    for one in look.selections:
        everywhere[one] = rw.visit(one.value)
    for part in look.stopped:
        name = rw.ctx.helpers.need(module_file("rules.compat.masks"), "only_where")
        made = _called(cst.Name(name), [rw.visit(found.stopped[part]), rw.visit(part)])
        everywhere[part] = _told(is_unsure(rw.ctx, found.stopped[part]), made)


def _called(function: cst.BaseExpression, args: list[Any]) -> cst.Call:
    return syntax.with_args(
        cst.Call(function), [cst.Arg(syntax.unparenthesized(one)) for one in args]
    )
