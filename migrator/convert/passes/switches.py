"""Switches of torch's backends and words to CUDA's allocator: they change no number, and have no counterpart."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_SETTINGS = frozenset(
    [
        "torch.set_float32_matmul_precision",
        "torch.use_deterministic_algorithms",
        "torch.backends.cuda.enable_flash_sdp",
        "torch.backends.cuda.enable_math_sdp",
        "torch.backends.cuda.enable_mem_efficient_sdp",
        "torch.backends.cuda.enable_cudnn_sdp",
    ]
)
_ALLOCATOR = frozenset(
    [
        "torch.cuda.empty_cache",
        "torch.cuda.ipc_collect",
        "torch.cuda.reset_peak_memory_stats",
        "torch.cuda.set_per_process_memory_fraction",
    ]
)
_BACKENDS = ("torch.backends.cudnn", "torch.backends.cuda.matmul", "torch.backends.mkldnn")


@converts(cst.Expr)
def told(rw: Rewriter, node: cst.Expr) -> Any:
    """``torch.cuda.empty_cache()`` goes."""
    call = node.value
    if not isinstance(call, cst.Call) or rw.ctx.facts.callee(call) not in _SETTINGS | _ALLOCATOR:
        return None
    return [] if all(_asks_nothing(rw, arg.value) for arg in call.args) else None


@converts(cst.Assign)
def switched(rw: Rewriter, node: cst.Assign) -> Any:
    """``torch.backends.cudnn.benchmark = True`` goes."""
    if not all(_is_switch(rw, target.target) for target in node.targets):
        return None
    return [] if _asks_nothing(rw, node.value) else None


def _is_switch(rw: Rewriter, target: cst.BaseAssignTargetExpression) -> bool:
    if not isinstance(target, cst.Attribute):
        return False
    return (rw.ctx.facts.qualified_name(target.value) or "") in _BACKENDS


def _asks_nothing(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether an expression may go with its statement: all it calls is torch's."""
    for node in syntax.walk(value):
        if isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield)):
            return False
        if isinstance(node, cst.Call):
            kind = rw.ctx.facts.kind(node.func)
            if not isinstance(kind, k.Function) or not kind.name.startswith("torch.cuda.is_"):
                return False
    return True
