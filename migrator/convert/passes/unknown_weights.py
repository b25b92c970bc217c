"""``m.weight *= 0.5`` of a layer whose class only a run tells: Flax calls it otherwise perhaps, and lays it out otherwise."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.unknown_layers import is_of_argument
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from migrator.infer.symbols import LAYERS

_OPERATORS = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign)


def augmented(rw: Rewriter, node: cst.AugAssign) -> cst.Expr | None:
    """``initialize(m, "weight", lambda w: w * 0.5)``; None where the layer is known, or it is no layer perhaps.

    Raises:
      Failure: a parameter is written, and it is not known how.
    """
    whole = not isinstance(node.target, cst.Subscript)
    held = node.target.value if isinstance(node.target, cst.Subscript) else node.target
    if not isinstance(held, cst.Attribute):
        return None
    data = held.attr.value == "data"
    unknown = targets.found_at_run_time(rw.ctx, held.value if data else held)
    layer = unknown is not None and _is_layer(rw.ctx, unknown.value)
    if unknown is not None and layer and whole and isinstance(node.operator, _OPERATORS):
        operator = syntax.code(node.operator).strip().removesuffix("=")
        parts = {"__w__": targets.whole(rw.ctx), "__y__": rw.visit(node.value)}
        value = syntax.substitute(syntax.parse(f"__w__ {operator} __y__"), parts)
        return targets.initialized(rw, unknown, value, cast=True)
    if (unknown is not None and (data or layer)) or is_of_argument(rw.ctx, held):
        what = "a parameter is written whose layer is not known"
        raise Failure(node, "MUT002", what, "annotate the layer, or write with mul_() and its like")
    return None


def with_parts(ctx: Context, held: cst.BaseExpression) -> cst.Attribute | None:
    """The parameter of ``m.bias.data[0] = 0``, and of ``m.bias[0] = 0`` where ``m`` surely is a layer of torch's."""
    if not isinstance(held, cst.Attribute):
        return None
    if held.attr.value == "data":
        return targets.found_at_run_time(ctx, held.value)
    unknown = targets.found_at_run_time(ctx, held)
    return unknown if unknown is not None and _is_layer(ctx, unknown.value) else None


def _is_layer(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether all that something may be are layers of torch's, whose weights are tensors if they have any."""
    kind = ctx.kind(node)
    if not isinstance(kind, k.Module):
        return False
    names = [one.cls for one in kind.among] or kind.cls.split("|")
    return all(name.startswith(LAYERS) and name != "torch.nn.Module" for name in names)
