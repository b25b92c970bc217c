"""What torch keeps of a tensor for a gradient, which a write by ``data`` changes unseen.

Autograd saves the result of some functions, and the operands of others. ``h.data.zero_()`` changes what is saved, and with
it the gradient, and torch counts no version of it. A port's gradient is of the values as they were.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import FunctionInfo
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
_MODULE = "torch.nn.Module"
_HOOKS = frozenset({"register_forward_hook", "register_module_forward_hook"})
_ASKED = frozenset(
    "data detach shape size dim ndim numel device dtype type requires_grad is_leaf is_cuda".split()
)
"""What is asked of a tensor without keeping it."""


def kept_for_gradient(
    ctx: Context, name: cst.Name, function: cst.FunctionDef, line: cst.Assign | None = None
) -> bool:
    """Whether the gradient of what a name holds, where it is written by ``data``, may go by its numbers.

    By what has computed it, or by what has read it since. ``line``: the name is read there, and given a new value.
    """
    tree = ctx.source.index
    names = [n for n in tree.within(function, cst.Name) if n.value == name.value]
    names = [n for n in names if line is None or _bound_by(ctx, n) is not line]
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
    return isinstance(last, cst.Assign) and _keeps_result(ctx, last.value, last, function)


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


def _keeps_result(
    ctx: Context, value: Any, line: cst.Assign | None, function: cst.FunctionDef
) -> bool:
    """Whether torch may keep the result of an expression, or the tensor that it is a view of."""
    value = _whole(value)
    if isinstance(value, cst.BinaryOperation | cst.UnaryOperation):
        return isinstance(getattr(value, "operator", None), cst.Power)
    if isinstance(value, cst.Name) and line is not None and value is not line.value:
        # ``e = e.squeeze(-1)``: nobody has the name of what it is a view of any more
        same = len(line.targets) == 1 and isinstance(line.targets[0].target, cst.Name)
        if same and line.targets[0].target.value == value.value:  # type: ignore[attr-defined]
            return kept_for_gradient(ctx, value, function, line)
    if not isinstance(value, cst.Call):
        return True  # another name of what something may have kept
    own = _own_function(ctx, value)
    if own is not None:
        return _keeps_returned(ctx, own)
    kind = ctx.kind(value.func)
    if isinstance(kind, k.Module):
        return kind.cls not in _LAYERS
    head, _, last = (ctx.facts.callee(value) or "").rpartition(".")
    known = head == "Tensor" or head.startswith("torch")
    return not known or last.removesuffix("_") not in _OTHERS


def _whole(value: Any) -> Any:
    """``energies`` of ``energies.squeeze(-1)``: what a view is of."""
    while True:
        value = undressed(value)
        inner = value.value if isinstance(value, cst.Subscript) else viewed(value)
        if inner is None:
            return value
        value = inner


def _own_function(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    """The function or method of the file that a call certainly runs; of a module, its forward pass."""
    kind = ctx.kind(call.func)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if isinstance(kind, k.Module) and _HOOKS.isdisjoint(ctx.words):
        made = ctx.facts.classes.get(kind.cls)
        info = made.method("forward") if made is not None and made.torch_base == _MODULE else None
    if info is None or info.settled is not None or info.decorators or info.generator:
        return None
    heirs = [c for c in ctx.facts.classes.values() if info.owner in c.lineage()]
    if any(c.methods.get(info.short, info) is not info for c in heirs):
        return None
    return info


def _keeps_returned(ctx: Context, info: FunctionInfo) -> bool:
    """Whether torch may keep what a function of the file returns, by what it does with it or how it computes it."""
    key = ("kept_results", info.node)
    returned = [n.value for n in ctx.source.index.within(info.node, cst.Return)]
    if key in ctx.asking or not returned:
        return True  # it calls itself
    ctx.asking.add(key)
    try:
        return any(
            _keeps_named(ctx, whole, info)
            if isinstance(whole := _whole(one), cst.Name)  # nobody has that any more
            else _keeps_result(ctx, one, None, info.node)
            for one in returned
        )
    finally:
        ctx.asking.discard(key)


def _keeps_named(ctx: Context, name: cst.Name, info: FunctionInfo) -> bool:
    """Whether torch may keep what a function returns under a name, whichever statement has given it its value."""
    if name.value in info.params:
        return True  # it may be what the caller has
    names = [n for n in ctx.source.index.within(info.node, cst.Name) if n.value == name.value]
    lines = [one for one in (_bound_by(ctx, n) for n in names) if one is not None]
    for line in lines:
        if not isinstance(line, cst.Assign) or len(line.targets) != 1:
            return True
        if not isinstance(line.targets[0].target, cst.Name):
            return True  # one of several
        if _keeps_result(ctx, line.value, line, info.node):
            return True
    return not lines or kept_for_gradient(ctx, name, info.node)
