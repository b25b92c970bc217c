"""Places that an index lists twice: torch's gradient of what is written there counts each, JAX's the one that stays."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.listed_parameters import given
from migrator.infer import kinds as k


def check_repeated(ctx: Context, target: cst.Subscript, value: cst.BaseExpression | None) -> None:
    """Raise a Failure where a tensor is written to places that are written out, and one of them twice."""
    off = ctx.no_grad or (ctx.frame is not None and ctx.frame.no_grad)
    if off or ctx.in_init or value is None or k.scalar_type(ctx.kind(value)) is not None:
        return
    for element in target.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        places = _written_out(ctx, index)
        if len(set(places)) < len(places):
            what = f"`{syntax.code(target)}` is written at one place more than once, where gradients differ"
            raise Failure(target, "MUT002", what, "list each place once")


_APART = frozenset(
    "torch.arange torch.argsort torch.randperm torch.nonzero torch.unique Tensor.argsort Tensor.nonzero Tensor.unique".split()
)
"""What lists each number once."""


def may_repeat(ctx: Context, target: cst.Subscript) -> bool:
    """Whether a float tensor whose gradient counts is written to by an index that may list a place twice."""
    whole = ctx.kind(target.value)
    off = ctx.no_grad or ctx.in_init or ctx.frame is None or ctx.frame.no_grad
    if off or not isinstance(whole, k.Tensor) or whole.dtype in ("int", "bool"):
        return False
    if whole.role == "buffer":
        return False
    for element in target.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        kind = ctx.kind(index) if index is not None else k.NONE
        if isinstance(kind, k.Tensor) and kind.dtype == "int" and kind.rank != 0:
            made = given(ctx, index) if isinstance(index, cst.Name) else index
            apart = isinstance(made, cst.Call) and ctx.facts.callee(made) in _APART
            if not apart and not _written_out(ctx, index):
                return True
    return False


def is_copy(ctx: Context, node: cst.Subscript) -> bool:
    """Whether what an index gives may be a copy in torch: one by a tensor or a list, as in ``x[:, idx]``."""
    if not isinstance(ctx.kind(node.value), k.Tensor):
        return False
    indices = [one.slice.value for one in node.slice if isinstance(one.slice, cst.Index)]
    if len(indices) == 1 and isinstance(indices[0], cst.Tuple):
        indices = [one.value for one in indices[0].elements]
    return any(_copies(ctx.kind(one)) for one in indices)


def _copies(kind: k.Kind) -> bool:
    if isinstance(kind, k.Tensor):
        return kind.dtype == "bool" or kind.rank != 0  # of one number it is a view
    if isinstance(kind, k.Tuple):
        return any(_copies(one) for one in kind.items)
    return isinstance(kind, k.Sequence)


def _written_out(ctx: Context, node: cst.BaseExpression | None) -> list[str]:
    """The numbers of ``[0, 0, 1]``, ``torch.tensor([0, 0, 1])``, and of a local name of these."""
    if isinstance(node, cst.Name):
        node = given(ctx, node)
    if isinstance(node, cst.Call) and ctx.facts.callee(node) in (
        "torch.tensor",
        "torch.LongTensor",
    ):
        node = node.args[0].value if node.args else None
    if not isinstance(node, (cst.List, cst.Tuple)):
        return []
    values = [e.value for e in node.elements]
    return [syntax.code(one) for one in values if isinstance(one, cst.Integer)]
