"""CUDA: code for one kind of device, which XLA replaces or which has to be written anew."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.definitions import ops
from rules.registry import Advice, FlagContext, flag

_KERNEL_IMPORTS = frozenset(
    ["triton", "cupy", "numba.cuda", "pycuda", "flash_attn", "xformers", "apex"]
)
_SCHEDULING = frozenset(
    [
        "Stream",
        "ExternalStream",
        "stream",
        "current_stream",
        "default_stream",
        "set_stream",
        "Event",
        "CUDAGraph",
        "graph",
        "make_graphed_callables",
        "graph_pool_handle",
        "synchronize",
    ]
)
_MEMORY = frozenset(
    [
        "empty_cache",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "reset_peak_memory_stats",
        "memory_summary",
        "set_per_process_memory_fraction",
        "ipc_collect",
    ]
)


def _is_cuda(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    value = getattr(ctx.kind(node), "value", None)
    return isinstance(value, str) and value.partition(":")[0] == "cuda"


@flag(
    "CUDA001",
    "cuda-device",
    cst.Call,
    severity="info",
    blocks=False,
    effort=0.0,
    what="a CUDA device is named",
    why="JAX places arrays on the accelerator by itself; conversion drops the move.",
    example='def move(x: torch.Tensor):\n    return x.to("cuda")',
    instead="def move(x: torch.Tensor):\n    return x",
)
def device(node: cst.Call, ctx: FlagContext) -> str | None:
    """``.cuda()``, ``.to("cuda")``, ``torch.device("cuda")``, ``device="cuda"``."""
    name = ctx.callee(node) or ""
    if name in ("Tensor.cuda", "Module.cuda"):
        return "it goes away; jax.device_put(x, device) places an array where that matters"
    if name in ("Tensor.to", "Module.to", "torch.device") and node.args:
        if _is_cuda(node.args[0].value, ctx):
            return "it goes away; jax.device_put(x, device) places an array where that matters"
    if name.startswith("torch."):
        for item in node.args:
            if (
                item.keyword is not None
                and item.keyword.value == "device"
                and _is_cuda(item.value, ctx)
            ):
                return "the argument goes away; jax.default_device(device) chooses where arrays are made"
    return None


@flag(
    "CUDA002",
    "custom-kernel",
    cst.Call,
    cst.Import,
    cst.ImportFrom,
    effort=16.0,
    what="a kernel written for one kind of device",
    why="Triton, CUDA and C++ extensions do not run on TPU; XLA fuses most of what they were written for.",
    example='from torch.utils.cpp_extension import load\n\nkernel = load("k", ["k.cu"])',
    instead="def kernel(x: torch.Tensor):\n    return torch.relu(x) + 1",
)
def kernel(node: Any, ctx: FlagContext) -> str | None:
    """``triton``, ``torch.utils.cpp_extension``, ``torch.ops.…``, ``load_library``."""
    if isinstance(node, cst.Call):
        name = ctx.callee(node) or ""
        last = name.rpartition(".")[2]
        if name.startswith("torch.utils.cpp_extension."):
            return "write the formula in jax.numpy and let XLA fuse it, or a Pallas kernel"
        if name.startswith("torch.ops.") and last != "load_library" and not ops(name):
            if not name.startswith(("torch.ops.aten.", "torch.ops.prim")):
                return f"write what `{last}` computes in jax.numpy, or a Pallas kernel"
        return None
    for module in _modules(node):
        if module in _KERNEL_IMPORTS or module.partition(".")[0] in _KERNEL_IMPORTS:
            if module.startswith(("flash_attn", "xformers")):
                return (
                    "use jax.nn.dot_product_attention, which takes the fused kernel of the device"
                )
            return "write the formula in jax.numpy and let XLA fuse it, or a Pallas kernel"
    return None


def _modules(node: cst.Import | cst.ImportFrom) -> list[str]:
    if isinstance(node, cst.Import):
        return [_dotted(alias.name) for alias in node.names]
    return [_dotted(node.module)] if node.module is not None and not node.relative else []


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


@flag(
    "CUDA003",
    "cuda-scheduling",
    cst.Call,
    effort=1.0,
    what="work is scheduled by hand on CUDA streams, events or graphs",
    why="XLA schedules a whole jitted program and overlaps transfers with computation by itself.",
    example="def run(x: torch.Tensor):\n    torch.cuda.synchronize()\n    return x + 1",
    instead="def run(x: torch.Tensor):\n    return x + 1",
)
def scheduling(node: cst.Call, ctx: FlagContext) -> Advice | str | None:
    """``torch.cuda.Stream``, ``Event``, ``CUDAGraph``, ``synchronize``."""
    name = ctx.callee(node) or ""
    short = name.rpartition(".")[2]
    if not name.startswith("torch.cuda.") or short not in _SCHEDULING:
        return None
    blocks = not ops(name)
    if short == "synchronize":
        return Advice(
            "drop it; to time something, call jax.block_until_ready(result)",
            blocks=blocks,
            effort=0.1,
        )
    if "raph" in short:
        return Advice(
            "drop it: a function under jax.jit is compiled and launched as one", blocks=blocks
        )
    return Advice("drop it: XLA orders and overlaps the work of a jitted function", blocks=blocks)


@flag(
    "CUDA004",
    "cuda-memory",
    cst.Call,
    severity="info",
    blocks=False,
    effort=0.1,
    what="the CUDA memory allocator is asked or told something",
    why="JAX has its own allocator; XLA knows the memory of a program when it compiles it.",
    example="def free():\n    torch.cuda.empty_cache()",
    instead="def free():\n    pass",
)
def memory(node: cst.Call, ctx: FlagContext) -> str | None:
    """``torch.cuda.empty_cache()``, ``memory_allocated()``."""
    name = ctx.callee(node) or ""
    if name.startswith("torch.cuda.") and name.rpartition(".")[2] in _MEMORY:
        return "drop it; jax.local_devices()[0].memory_stats() tells what is in use"
    return None


@flag(
    "CUDA005",
    "backend-switch",
    cst.Assign,
    cst.Call,
    severity="info",
    blocks=False,
    effort=0.1,
    what="a switch of a torch backend is set",
    why="Algorithms and precision are XLA's choice; one setting has a counterpart, the matmul precision.",
    example='torch.set_float32_matmul_precision("high")',
    instead="x = torch.zeros(3)",
)
def backend(node: cst.Assign | cst.Call, ctx: FlagContext) -> str | None:
    """``torch.backends.cudnn.benchmark = True``, ``torch.set_float32_matmul_precision``."""
    precision = 'jax.config.update("jax_default_matmul_precision", "float32") where full precision is needed'
    if isinstance(node, cst.Call):
        name = ctx.callee(node) or ""
        if name in ("torch.set_float32_matmul_precision", "torch.use_deterministic_algorithms"):
            return precision if "precision" in name else "drop it: XLA on TPU is deterministic"
        if name.startswith("torch.backends.cuda.enable_"):
            return "drop it: XLA chooses the algorithms"
        return None
    for item in node.targets:
        target = item.target
        if isinstance(target, cst.Attribute):
            name = ctx.qualified_name(target.value) or ""
            if name.startswith("torch.backends"):
                if "tf32" in target.attr.value or "precision" in target.attr.value:
                    return precision
                return "drop it: XLA chooses the algorithms"
    return None
