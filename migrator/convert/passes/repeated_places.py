"""Places that an index lists twice: torch's gradient of what is written there counts each, JAX's the one that stays."""

from __future__ import annotations

import re

import libcst as cst

from migrator import syntax
from migrator.convert.called_untracked import gradients_off
from migrator.convert.context import Context, Failure
from migrator.convert.passes.listed_parameters import given
from migrator.convert.untracked import has_gradient
from migrator.infer import kinds as k


def check_repeated(ctx: Context, target: cst.Subscript, value: cst.BaseExpression | None) -> None:
    """Raise a Failure where a tensor is written to places that are written out, and one of them twice."""
    if (
        gradients_off(ctx)
        or ctx.in_init
        or value is None
        or k.scalar_type(ctx.kind(value)) is not None
    ):
        return
    for element in target.slice:
        index = element.slice.value if isinstance(element.slice, cst.Index) else None
        places = _written_out(ctx, index)
        if len(set(places)) < len(places):
            what = f"`{syntax.code(target)}` is written at one place more than once, where gradients differ"
            raise Failure(target, "MUT002", what, "list each place once")


_APART = frozenset("torch.arange torch.randperm torch.unique Tensor.unique".split())
"""What lists each number once; what sorts several rows does so for each of them."""


def may_repeat(ctx: Context, target: cst.Subscript) -> bool:
    """Whether a float tensor whose gradient counts is written to by an index that may list a place twice."""
    if not _counts(ctx, ctx.kind(target.value)):
        return False
    indices = [one.slice.value for one in target.slice if isinstance(one.slice, cst.Index)]
    return not _list_once(ctx, indices)


def _counts(ctx: Context, whole: k.Kind) -> bool:
    """Whether the gradient of what is written to a tensor counts."""
    off = ctx.in_init or ctx.frame is None or gradients_off(ctx)
    if off or not isinstance(whole, k.Tensor) or whole.dtype in ("int", "bool"):
        return False
    return whole.role != "buffer"


def lists_once(ctx: Context, index: cst.BaseExpression, beside: int = 0) -> bool:
    """Whether an index lists no place twice, as far as is known: a number, ``torch.arange(n)``, a mask.

    Args:
      beside: the axes of an index that names the row, as in ``x[torch.arange(n)[:, None], order]``; 0 for none.
    """
    kind = ctx.kind(index)
    if not isinstance(kind, k.Tensor) or kind.dtype == "bool" or kind.rank == 0:
        return True
    if isinstance(index, cst.UnaryOperation) and isinstance(index.operator, cst.BitInvert):
        return True  # a mask
    if any(_is_range(ctx, one) for one in _values(ctx, index)) or _written_out(ctx, index):
        return True
    if kind.rank == 1:
        return _is_order(ctx, index, None)
    if kind.rank is None and not beside:  # taken for one row, if it does not say an axis
        made = _values(ctx, index)
        named = [isinstance(v, cst.Call) and ctx.facts.callee(v) in _ARGSORT for v in made]
        return bool(made) and all(named) and _is_order(ctx, index, syntax.parse("-1"))
    return bool(beside) and _is_order(ctx, index, syntax.parse("-1"), beside)


def _list_once(ctx: Context, indices: list[cst.BaseExpression]) -> bool:
    ranges = [ctx.kind(one) for one in indices if any(_is_range(ctx, v) for v in _values(ctx, one))]
    ranks = [(one.rank if isinstance(one, k.Tensor) else None) or 2 for one in ranges]  # a column
    beside = max(ranks, default=0) if len(indices) > 1 else 0
    return all(lists_once(ctx, one, beside) for one in indices)


def _is_range(ctx: Context, node: cst.BaseExpression) -> bool:
    """``torch.arange(n)``, ``torch.arange(n)[:, None]``."""
    while True:
        if isinstance(node, cst.Call) and ctx.facts.callee(node) in _APART:
            return True
        if isinstance(node, cst.Subscript):
            node = node.value
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value not in _KEEPING:
                return False
            node = node.func.value
        else:
            return False


_KEEPING = frozenset("contiguous detach flatten long reshape squeeze to unsqueeze view".split())
"""Methods that give the numbers of a tensor."""


def are_distinct(
    ctx: Context,
    whole: k.Kind,
    index: cst.BaseExpression,
    value: cst.BaseExpression,
    dim: cst.BaseExpression | None = None,
) -> bool:
    """Whether what is written by an index has no gradient that counts, or no place is listed twice.

    Args:
      value: what is written, as the output has it.
      dim: the axis along which each row of the index lists places, as for ``scatter``; None for whole rows.
    """
    if not _counts(ctx, whole) or not has_gradient(ctx, value):
        return True
    if dim is not None:
        return _is_order(ctx, index, dim, whole.rank if isinstance(whole, k.Tensor) else None)
    several = isinstance(index, (cst.Tuple, cst.List))
    parts = [e.value for e in index.elements] if isinstance(index, (cst.Tuple, cst.List)) else []
    return _list_once(ctx, parts if several else [index])


_ARGSORT = ("torch.argsort", "Tensor.argsort")
_ORDERS = frozenset("topk sort argsort".split())
"""What lists each place of an axis at most once."""


def _is_order(
    ctx: Context,
    node: cst.BaseExpression,
    dim: cst.BaseExpression | None,
    rank: int | None = None,
) -> bool:
    """``x.topk(n, dim=1).indices``, ``_, i = x.sort(1)`` and then ``i[:, :n]``: places along an axis, each once."""
    call: cst.CSTNode = node
    if isinstance(node, cst.Attribute) and node.attr.value == "indices":
        call = node.value
    elif isinstance(node, cst.Subscript) and syntax.code(node).endswith("[1]"):
        call = node.value
    if isinstance(call, cst.Call) and _orders(ctx, call, dim, rank):
        return True
    if isinstance(node, cst.Subscript) and any(isinstance(e.slice, cst.Slice) for e in node.slice):
        return _is_order(ctx, node.value, dim, rank)
    if not isinstance(node, cst.Name):
        return False
    values = _values(ctx, node)
    return bool(values) and all(
        one is not node and _is_order(ctx, one, dim, rank) for one in values
    )


def _values(ctx: Context, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a local name is given, in a tuple perhaps; the second of two is ``f(x).indices`` of ``_, i = f(x)``."""
    if not isinstance(node, cst.Name):
        return [node]
    if ctx.frame is None or node.value in ctx.frame.info.params:
        return []
    found = list[cst.BaseExpression]()
    for line in ctx.facts.tree.within(ctx.frame.info.node.body, cst.AnnAssign, cst.Assign):
        targets = [line] if isinstance(line, cst.AnnAssign) else line.targets
        for target in (one.target for one in targets):
            if node.value not in syntax.names(target) or line.value is None:
                continue
            if isinstance(target, cst.Name):
                found.append(line.value)
            elif isinstance(target, (cst.Tuple, cst.List)):
                places = [syntax.code(e.value) for e in target.elements]
                if node.value not in places:
                    return []
                at = places.index(node.value)
                if isinstance(line.value, cst.Tuple) and len(line.value.elements) == len(places):
                    found.append(line.value.elements[at].value)
                elif at == 1 and len(places) == 2:
                    found.append(cst.Attribute(line.value, cst.Name("indices")))
                else:
                    return []
    return found


def _orders(ctx: Context, call: cst.Call, dim: cst.BaseExpression | None, rank: int | None) -> bool:
    """Whether a call sorts along an axis: the last one, where none is said. ``rank`` counts where it is not known."""
    name = ctx.facts.callee(call) or ""
    if name.rpartition(".")[2] not in _ORDERS or not name.startswith(("torch.", "Tensor.")):
        return False
    if dim is None:
        return True
    plain = [a.value for a in call.args if a.keyword is None and not a.star]
    place = name.endswith("topk") + name.startswith("torch.")
    said = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "dim"]
    said += plain[place : place + 1]
    receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
    if name.startswith("torch."):
        receiver = plain[0] if plain else None
    kind = ctx.kind(receiver) if receiver is not None else k.UNKNOWN
    rank = (kind.rank if isinstance(kind, k.Tensor) else None) or rank

    def axis(code: str) -> str:
        return str(int(code) % rank) if rank and code.lstrip("-").isdigit() else code

    return axis(syntax.code(said[0]) if said else "-1") == axis(syntax.code(dim))


def is_copy(ctx: Context, node: cst.Subscript) -> bool:
    """Whether what an index gives may be a copy in torch: one by a tensor or a list, as in ``x[:, idx]``.

    What a loop goes through is taken for numbers and slices: a write to a copy, round after round, does nothing.
    """
    if not isinstance(ctx.kind(node.value), k.Tensor):
        return False
    indices = [one.slice.value for one in node.slice if isinstance(one.slice, cst.Index)]
    if len(indices) == 1 and isinstance(indices[0], cst.Tuple):
        indices = [one.value for one in indices[0].elements]
    if any(_copies(ctx.kind(one)) for one in indices):
        return True
    return any(
        isinstance(ctx.kind(one), k.Unknown) and not _is_one_place(ctx, one) for one in indices
    )


_PADDING = re.compile(r"pad(ding)?(_token)?_?(idx|id|index)$")
"""What the row of an embedding is called that stands for nothing, which is one number in torch."""


def _is_one_place(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a name is what a loop goes through, or is computed of it: ``i``, ``i + 1``; or a layer's ``padding_idx``."""
    if _PADDING.search(syntax.code(node)):
        return True
    names = set(syntax.names(node))
    loops = ctx.facts.tree.within(ctx.frame.info.node.body, cst.For) if ctx.frame else ()
    return any(names & set(syntax.names(loop.target)) for loop in loops)


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
