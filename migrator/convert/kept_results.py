"""What torch keeps of a tensor for a gradient, which a write by ``data`` changes unseen.

Autograd saves the result of some functions, and the operands of others. ``h.data.zero_()`` changes what is saved, and with
it the gradient, and torch counts no version of it. A port's gradient is of the values as they were.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k
from migrator.views import undressed, viewed

_OTHERS = frozenset(
    "add sub subtract mul multiply div divide true_divide neg abs sin cos log log2 log10 log1p clamp clip where matmul mm "
    "bmm mv baddbmm addmm einsum tensordot outer linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d sum mean "
    "cumsum cat concat stack clone contiguous reshape flatten repeat expand roll flip gather index_select masked_fill pad "
    "interpolate embedding layer_norm group_norm batch_norm dropout gelu silu leaky_relu softplus tril triu "
    "float double to type type_as zeros ones full rand randn zeros_like ones_like full_like arange tensor".split()
)
"""Functions whose gradient torch does not compute from their result (tools/autograd/derivatives.yaml)."""
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in "Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Dropout LayerNorm GroupNorm "
    "BatchNorm1d BatchNorm2d BatchNorm3d Embedding GELU SiLU".split()
)
"""Layers whose gradient is not computed from their result."""
_ASKED = frozenset("data detach shape size dim ndim numel device dtype type".split())
"""What is asked of a tensor without keeping it."""


def kept_for_gradient(ctx: Context, name: cst.Name, function: cst.FunctionDef) -> bool:
    """Whether the gradient of what a name holds, where it is written by ``data``, may go by its numbers.

    By what has computed it, or by what has read it since.
    """
    tree = ctx.source.index
    names = [n for n in tree.within(function, cst.Name) if n.value == name.value]
    write = next((place for place, one in enumerate(names) if one is name), None)
    if write is None:
        return True
    given = [place for place in range(write) if _bound_by(ctx, names[place]) is not None]
    start = given[-1] if given else -1
    last = _bound_by(ctx, names[start]) if given else None
    reads = names[start + 1 : write]
    around = reversed(tree.around(name))
    loop = next((n for n in around if isinstance(n, cst.For | cst.While)), None)
    if loop is not None and loop is not last and (last is None or not tree.holds(loop, last)):
        reads += [one for one in names[write + 1 :] if tree.holds(loop, one)]
    if any(not _is_only_asked(ctx, one, last) for one in reads):
        return True
    return isinstance(last, cst.Assign) and _keeps_result(ctx, last.value)


def _bound_by(ctx: Context, name: cst.Name) -> cst.Assign | cst.For | cst.Param | None:
    """What gives a name its value, where it is a target of that."""
    tree = ctx.source.index
    inner: cst.CSTNode = name
    for outer in reversed(tree.around(name)):
        if isinstance(outer, cst.For):
            return outer if outer.target is inner else None
        if isinstance(outer, cst.Param):
            return outer if outer.name is inner else None
        if isinstance(outer, cst.AssignTarget):
            assign = tree.around(outer)[-1]
            return assign if isinstance(assign, cst.Assign) else None
        if not isinstance(outer, cst.Element | cst.Tuple | cst.List):
            return None
        inner = outer
    return None


def _is_only_asked(ctx: Context, name: cst.Name, last: cst.CSTNode | None) -> bool:
    """Whether a read keeps nothing: ``h.shape``, ``h > 0``, or one of what the name held before."""
    tree = ctx.source.index
    if isinstance(last, cst.Assign) and tree.holds(last, name):
        return True
    parent = tree.around(name)[-1]
    if isinstance(parent, cst.ComparisonTarget | cst.Comparison):
        return True
    if isinstance(parent, cst.Arg):  # what initialises it is not differentiated
        return (ctx.facts.callee(tree.parent(parent)) or "").startswith("torch.nn.init.")
    return isinstance(parent, cst.Attribute) and parent.attr.value in _ASKED


def _keeps_result(ctx: Context, value: Any) -> bool:
    """Whether torch may keep the result of an expression, or the tensor that it is a view of."""
    while True:
        value = undressed(value)
        inner = value.value if isinstance(value, cst.Subscript) else viewed(value)
        if inner is None:
            break
        value = inner
    if isinstance(value, cst.BinaryOperation | cst.UnaryOperation):
        return isinstance(getattr(value, "operator", None), cst.Power)
    if not isinstance(value, cst.Call):
        return True  # another name of what something may have kept
    kind = ctx.kind(value.func)
    if isinstance(kind, k.Module):
        return kind.cls not in _LAYERS
    head, _, last = (ctx.facts.callee(value) or "").rpartition(".")
    known = head == "Tensor" or head.startswith("torch")
    return not known or last.removesuffix("_") not in _OTHERS
