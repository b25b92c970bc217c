"""DTY: number types that mean something else, or cost something else, in JAX and on TPU."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.flags._autocast import Use, use
from rules.registry import Advice, FlagContext, code, flag

_LIMIT = 2**31


code(
    "DTY001",
    "dtype-without-counterpart",
    effort=1.0,
    what="a dtype that JAX does not have",
    why="Quantised and packed dtypes of torch have no array type in JAX.",
    example="def f(x: torch.Tensor):\n    return x.to(torch.qint8)",
    instead="def f(x: torch.Tensor):\n    return x.to(torch.int8)",
)


def _dtype(node: Any, ctx: FlagContext) -> str | None:
    """The dtype that an attribute or name stands for, outside of imports and longer names."""
    if type(ctx.kind(node)).__name__ != "DType":
        return None
    if ctx.parents and isinstance(ctx.parents[-1], (cst.ImportAlias, cst.Annotation)):
        return None
    name = ctx.qualified_name(node) or ""
    return name.removeprefix("torch.") or None


def _method(node: cst.Call, ctx: FlagContext) -> str:
    name = ctx.callee(node) or ""
    return name.rpartition(".")[2] if name.startswith(("Tensor.", "Module.")) else ""


@flag(
    "DTY002",
    "float64",
    cst.Attribute,
    cst.Name,
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.25,
    what="float64 becomes float32 unless x64 is switched on",
    why="JAX computes in 32 bits by default, and TPUs have no 64-bit floating point unit.",
    example="def f(x: torch.Tensor):\n    return x.double().sum()",
    instead="def f(x: torch.Tensor):\n    return x.sum()",
)
def float64(node: Any, ctx: FlagContext) -> str | None:
    """``torch.float64``, ``torch.double``, ``.double()``, ``torch.DoubleTensor(…)``."""
    found = (
        _method(node, ctx) == "double" or ctx.callee(node) == "torch.DoubleTensor"
        if isinstance(node, cst.Call)
        else _dtype(node, ctx) in ("float64", "double", "complex128", "cdouble")
    )
    if not found or any(isinstance(parent, cst.Comparison) for parent in ctx.parents):
        return None
    return 'is float32 enough here? If not, jax.config.update("jax_enable_x64", True) before the first array'


@flag(
    "DTY003",
    "float16",
    cst.Attribute,
    cst.Name,
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.1,
    what="float16 is slow or emulated on TPU",
    why="The matrix unit takes bfloat16, which has the range of float32 and needs no loss scaling.",
    example="def f(x: torch.Tensor):\n    return x.half()",
    instead="def f(x: torch.Tensor):\n    return x.bfloat16()",
)
def float16(node: Any, ctx: FlagContext) -> str | None:
    """``torch.float16``, ``torch.half``, ``.half()``."""
    if isinstance(node, cst.Call):
        return "use `.astype(jnp.bfloat16)`" if _method(node, ctx) == "half" else None
    if _dtype(node, ctx) not in ("float16", "half") or any(
        isinstance(p, cst.Comparison) for p in ctx.parents
    ):
        return None
    return "use jnp.bfloat16"


@flag(
    "DTY004",
    "int64-range",
    cst.Integer,
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.5,
    what="an integer beyond 32 bits",
    why="int64 becomes int32 in JAX unless x64 is switched on; larger numbers overflow without a word.",
    example="def f(i: torch.Tensor):\n    return i * 2654435761",
    instead="def f(i: torch.Tensor):\n    return i * 40503",
)
def int64(node: Any, ctx: FlagContext) -> str | None:
    """Integers of 2**31 and more beside tensors, ``torch.iinfo(torch.int64)``."""
    advice = 'keep to 32 bits (uint32 for hashes), or jax.config.update("jax_enable_x64", True)'
    if type(node) is cst.Call:
        if ctx.callee(node) != "torch.iinfo" or not node.args:
            return None
        return advice if _dtype(node.args[0].value, ctx) in ("int64", "long") else None
    if len(node.value) < len(str(_LIMIT)) or node.evaluated_value < _LIMIT:
        return None
    for parent in reversed(ctx.parents):
        if isinstance(parent, (cst.BinaryOperation, cst.Comparison)) and ctx.is_tensor(parent):
            return advice
        if isinstance(parent, cst.Call):
            name = ctx.callee(parent) or ""
            return advice if name.startswith(("torch.", "Tensor.")) and "seed" not in name else None
        if isinstance(parent, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return None
    return None


@flag(
    "DTY005",
    "autocast",
    cst.With,
    cst.Decorator,
    effort=1.0,
    what="mixed precision is chosen by a context",
    why="JAX has no autocast: every array has the dtype that it is given, and every layer takes dtype=.",
    example='def f(net: nn.Module, x: torch.Tensor):\n    with torch.autocast("cuda"):\n        return net(x)',
    instead="def f(net: nn.Module, x: torch.Tensor):\n    return net(x.bfloat16())",
)
def autocast(node: Any, ctx: FlagContext) -> Advice | None:
    """``with torch.autocast(…)``, ``@torch.autocast(…)``."""
    items = [item.item for item in node.items] if isinstance(node, cst.With) else [node.decorator]
    for item in items:
        if _use(item, ctx) is Use.ON:
            return Advice(_LOWER, node=item)
    return None


@flag(
    "DTY009",
    "autocast-by-a-flag",
    cst.With,
    cst.Decorator,
    severity="warning",
    blocks=False,
    effort=0.5,
    what="mixed precision on CUDA is switched by a flag, and the port has no such switch",
    why="Off CUDA torch computes there in the dtypes of the tensors, whatever the flag says, and so does the port.",
    example=(
        "def f(net: nn.Module, x: torch.Tensor, amp: bool):\n"
        '    with torch.autocast("cuda", enabled=amp):\n        return net(x)'
    ),
    instead='def f(net: nn.Module, x: torch.Tensor):\n    with torch.autocast("cuda", enabled=False):\n        return net(x)',
)
def autocast_by_a_flag(node: Any, ctx: FlagContext) -> Advice | None:
    """``with torch.autocast("cuda", enabled=amp):``, ``@torch.cuda.amp.autocast(enabled=AMP)``."""
    items = [item.item for item in node.items] if isinstance(node, cst.With) else [node.decorator]
    for item in items:
        if _use(item, ctx) is Use.ON_CUDA:
            return Advice(f"for lower precision {_LOWER}", node=item)
    return None


_LOWER = "build the layers with dtype=jnp.bfloat16 (parameters stay float32), and cast where float32 is needed"


def _use(item: cst.BaseExpression, ctx: FlagContext) -> Use | None:
    return use(item, ctx.qualified_name(item.func if isinstance(item, cst.Call) else item))


@flag(
    "DTY006",
    "default-dtype",
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.25,
    what="the default dtype of new tensors is changed",
    why="JAX has no such setting: arrays are float32 unless a dtype is given.",
    example="torch.set_default_dtype(torch.bfloat16)",
    instead="x = torch.zeros(3, dtype=torch.bfloat16)",
)
def default_dtype(node: cst.Call, ctx: FlagContext) -> str | None:
    """``torch.set_default_dtype``, ``torch.set_default_tensor_type``."""
    if ctx.callee(node) in ("torch.set_default_dtype", "torch.set_default_tensor_type"):
        return "give dtype= where arrays are made, and param_dtype= to layers"
    return None


@flag(
    "DTY007",
    "gradient-scaler",
    cst.Call,
    severity="info",
    blocks=False,
    effort=0.25,
    what="gradients are scaled for float16",
    why="bfloat16 has the range of float32, so nothing underflows and no scaling is needed.",
    example='scaler = torch.amp.GradScaler("cuda")',
    instead="scale = 1.0",
)
def scaler(node: cst.Call, ctx: FlagContext) -> str | None:
    """``torch.amp.GradScaler``, ``torch.cuda.amp.GradScaler``."""
    name = ctx.callee(node) or ""
    if name.startswith("torch.") and name.endswith(".GradScaler"):
        return "drop it and train in bfloat16"
    return None


@flag(
    "DTY008",
    "complex-parameter",
    cst.Call,
    severity="warning",
    blocks=False,
    effort=0.25,
    what="a parameter is complex, and its gradient is the conjugate of torch's",
    why="torch gives the direction in which to descend; jax.grad gives its conjugate, along which an optimiser ascends "
    "in the imaginary parts.",
    example="w = torch.nn.Parameter(torch.randn(3, dtype=torch.cfloat))",
    instead="w = torch.nn.Parameter(torch.randn(3, 2))\n\nz = torch.view_as_complex(w)",
)
def complex_parameter(node: cst.Call, ctx: FlagContext) -> Advice | None:
    """``nn.Parameter(torch.randn(n, dtype=torch.cfloat))``."""
    if ctx.callee(node) != "torch.nn.Parameter" or not node.args:
        return None
    if ctx.dtype(node.args[0].value) != "complex":
        return None
    return Advice(
        "conjugate the gradients before the optimiser sees them: `jax.tree.map(jnp.conj, grads)`",
        what="a parameter is complex: jax.grad gives the conjugate of torch's gradient",
    )
