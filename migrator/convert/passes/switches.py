"""Switches of torch's backends and words to CUDA's allocator: they change no number, and have no counterpart."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.symbols import COMPILER, COMPILERS
from migrator.source import dotted

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
_USUAL = frozenset(["torch.set_default_dtype", "torch.set_default_device"])
_RUN_TIME = frozenset(
    [
        "torch.set_num_threads",
        "torch.set_num_interop_threads",
        "torch.set_printoptions",
        "torch.autograd.set_detect_anomaly",
        "torch.cuda.set_device",
        "torch.mps.empty_cache",
    ]
)
_TOLD = _SETTINGS | _ALLOCATOR | COMPILER
_BACKENDS = ("torch.backends.cudnn", "torch.backends.cuda.matmul", "torch.backends.mkldnn")


@converts(cst.Expr, called=_TOLD, values=(cst.Call,))
def told(rw: Rewriter, node: cst.Expr) -> Any:
    """``torch.cuda.empty_cache()`` goes."""
    call = node.value
    if not isinstance(call, cst.Call) or rw.ctx.facts.callee(call) not in _TOLD:
        return None
    return [] if all(_asks_nothing(rw, arg.value) for arg in call.args) else None


@converts(cst.Expr, called=_RUN_TIME | _USUAL, values=(cst.Call,))
def placed(rw: Rewriter, node: cst.Expr) -> Any:
    """``torch.set_num_threads(4)``, ``torch.set_default_device("cuda")`` go, with a word."""
    call = node.value
    name = rw.ctx.facts.callee(call) or "" if isinstance(call, cst.Call) else ""
    if not isinstance(call, cst.Call) or not (name in _RUN_TIME or _is_usual(rw, call, name)):
        return None
    if not all(_asks_nothing(rw, arg.value) for arg in call.args):
        return None
    what, advice = f"{name} is left out: it sets torch's run time", "JAX has settings of its own"
    rw.ctx.report(node, "CUDA005", what, advice, severity="info", blocks=False)
    return []


def _is_usual(rw: Rewriter, call: cst.Call, name: str) -> bool:
    """``set_default_dtype(torch.float32)``, and a default device that tensors have numbers on."""
    if len(call.args) != 1 or call.args[0].star:
        return False
    kind = rw.ctx.kind(call.args[0].value)
    if name == "torch.set_default_dtype":
        return kind == k.DType("float32")
    if name != "torch.set_default_device":
        return False
    text = rw.ctx.source.text
    known = isinstance(kind, k.Device) or (isinstance(kind, k.Const) and kind.value is not None)
    return known and '"meta"' not in text and "'meta'" not in text


@converts(cst.Assign, targets=(cst.Attribute,))
def switched(rw: Rewriter, node: cst.Assign) -> Any:
    """``torch.backends.cudnn.benchmark = True`` goes."""
    if not all(_is_switch(rw, target.target) for target in node.targets):
        return None
    return [] if _asks_nothing(rw, node.value) else None


def _is_switch(rw: Rewriter, target: cst.BaseAssignTargetExpression) -> bool:
    if not isinstance(target, cst.Attribute):
        return False
    name = rw.ctx.facts.qualified_name(target.value) or dotted(target.value) or ""
    return name in _BACKENDS or any(f"{name}.".startswith(f"{one}.") for one in COMPILERS)


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
