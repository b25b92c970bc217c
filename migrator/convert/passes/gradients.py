"""``loss.backward()`` in a function that only tries a model out."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_READERS = frozenset(
    "grad grad_fn step zero_grad retain_grad register_hook register_backward_hook autograd optim "
    "register_full_backward_hook clip_grad_norm_ clip_grad_value_ clip_grad_norm".split()
)


@converts(cst.Expr, called=("Tensor.backward",), values=(cst.Call,))
def backward(rw: Rewriter, node: cst.Expr) -> Any:
    """Gradients that nobody can read are not computed: ``y.sum().backward()`` at the end of a try-out."""
    call = node.value
    if not isinstance(call, cst.Call) or rw.ctx.facts.callee(call) != "Tensor.backward":
        return None
    if not _is_try_out(rw) or _reads_gradients(rw):
        return None
    rw.ctx.report(
        node,
        "TRC012",
        "backward() is left out, since nothing in this file reads a gradient",
        "nnx.grad of a function of the model gives what was meant to be looked at",
        severity="info",
        blocks=False,
    )
    return []


def _is_try_out(rw: Rewriter) -> bool:
    """Whether the code makes its own model and hands it to nobody: the program itself, or a function without
    parameters that returns nothing."""
    ctx = rw.ctx
    if any(isinstance(kind, k.Module) for kind in ctx.facts.module_env.values()) and ctx.frames:
        return False
    if not ctx.frames:
        return True
    info = ctx.frames[0].info
    params = info.node.params
    stars = [p for p in (params.star_arg, params.star_kwarg) if isinstance(p, cst.Param)]
    alone = not (params.params or params.posonly_params or params.kwonly_params or stars)
    silent = info.returns is None or info.returns == k.NONE
    return len(ctx.frames) == 1 and info.owner is None and alone and silent


def _reads_gradients(rw: Rewriter) -> bool:
    tree = rw.ctx.facts.tree
    return any(item.attr.value in _READERS for item in tree.of_type(cst.Attribute)) or any(
        item.value in _READERS for item in tree.of_type(cst.Name)
    )
