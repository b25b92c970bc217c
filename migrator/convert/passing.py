"""Which calls of libraries and layers give memory of what they are handed."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.sharing import VIEWS, inplace_argument, operands, run_layer
from migrator.infer import kinds as k

_PASSING_LAYERS = frozenset(
    "Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout "
    "Sequential".split()
)


def makes_new(ctx: Context, node: cst.Call, name: str) -> bool:
    """Whether what a function or layer of LIBRARIES makes shares no memory with what it is handed."""
    short = name.rpartition(".")[2]
    if name.endswith("()"):
        may_pass = _may_pass(ctx, node, short.removesuffix("()"))
        return not may_pass and k.in_place(ctx.kind(node.func)) is False
    if short == "einsum" and operands(node) > 1:
        return True  # a product; of one operand it may be a view
    in_place = short.endswith("_") and not short.endswith("__")
    return not (in_place or short in VIEWS or inplace_argument(name, node) is not None)


def _may_pass(ctx: Context, node: cst.Call, cls: str) -> bool:
    """Whether a layer may return memory of its input: a Sequential does only if all of its children may."""
    if cls != "Sequential":
        return cls in _PASSING_LAYERS
    kind = ctx.kind(node.func)
    return _all_pass(ctx, kind) if isinstance(kind, k.Module) else True


def _all_pass(ctx: Context, sequential: k.Module) -> bool:
    children = [child for name, child in sequential.args if name.isdigit()]
    return all(passes(ctx, child) for child in children or [sequential.item])


def passes(ctx: Context, kind: object) -> bool:
    """Whether a layer of a Sequential may return memory of its input."""
    if not isinstance(kind, k.Module) or kind.cls == "torch.nn.Module":
        return not isinstance(kind, k.Module)
    own = ctx.facts.classes.get(kind.cls)
    if own is not None and (forward := own.method("forward")) is not None:
        from migrator.convert.memory import returns_argument

        return returns_argument(ctx, forward)
    cls = run_layer(ctx, kind).rpartition(".")[2]
    if cls == "Sequential" and k.in_place(kind) is False:
        return _all_pass(ctx, kind)
    return cls in _PASSING_LAYERS or k.in_place(kind) is not False
