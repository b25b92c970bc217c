"""Layers that give tuples: ``nnx.Sequential`` would spread one over the arguments of the next, torch hands it on whole."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_OF_TORCH = frozenset(f"torch.nn.{name}" for name in "LSTM GRU RNN MultiheadAttention".split())


def returns_tuple(ctx: Context, kind: k.Kind) -> bool:
    """Whether calling a child may give a tuple, or one of several; where it may be any, whether one of the file's does."""
    if isinstance(kind, (k.Sequence, k.Tuple)):
        several = kind.items if isinstance(kind, k.Tuple) else (kind.item,)
        return any(returns_tuple(ctx, one) for one in several)
    if isinstance(kind, k.Unknown) or (k.is_any_module(kind) and not kind.among):  # type: ignore[attr-defined]
        forwards = (one.method("forward") for one in ctx.facts.classes.values() if one.torch_base)
        return any(_gives_tuple(ctx, one) for one in forwards if one is not None)
    if not isinstance(kind, k.Module):
        return False
    if kind.among:
        return any(returns_tuple(ctx, one) for one in kind.among)
    info = ctx.facts.classes.get(kind.cls)
    forward = info.method("forward") if info is not None else None
    if forward is None and kind.cls == "torch.nn.Sequential":
        return hands_tuples(ctx, kind)
    return _gives_tuple(ctx, forward) if forward is not None else kind.cls in _OF_TORCH


def hands_tuples(ctx: Context, kind: k.Kind) -> bool:
    """Whether one of the layers of a Sequential may hand a tuple to the next."""
    if not isinstance(kind, k.Module):
        return False
    parts = [one for name, one in kind.args if name.isdigit()] or [kind.item or k.UNKNOWN]
    return any(returns_tuple(ctx, one) for one in parts)


def _gives_tuple(ctx: Context, forward: FunctionInfo) -> bool:
    if isinstance(forward.returns, (k.Tuple, k.Sequence, k.Mapping)):
        return True
    if not isinstance(forward.returns, k.Unknown | None) or not ctx.facts.tree.has(forward.node):
        return False
    lines = ctx.facts.tree.within(forward.node.body, cst.Return)
    return any(isinstance(one.value, (cst.Tuple, cst.Dict, cst.List)) for one in lines)
