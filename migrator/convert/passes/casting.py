"""``module.half()``, ``module.to(dtype)``: the parameters and buffers of a module in another type."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.passes.places import is_place
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

TYPES = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}
"""Methods of modules, and of tensors, and the type they cast to."""
MOVES = frozenset("to cuda cpu".split())


@converts(cst.Expr, named=MOVES, values=(cst.Call,))
def moved(rw: Rewriter, node: cst.Expr) -> Any:
    """``model.to(device)``, ``super().cuda()`` as a statement goes, of a module."""
    call = node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    method, receiver = call.func.attr.value, call.func.value
    if method not in MOVES or _casts(rw, call):
        return None
    if syntax.is_super(receiver):
        owner = rw.ctx.owner
        if owner is None or owner.torch_base is None:
            return None
        return None if any(method in p.methods for p in owner.lineage()[1:]) else []
    kind = rw.ctx.facts.kind(call.func)
    torchs = isinstance(kind, k.Function) and kind.name == f"Module.{method}"
    return [] if torchs and isinstance(receiver, cst.Name) else None


def cast(rw: Rewriter, node: cst.Call, method: str) -> cst.BaseExpression | None:
    """A call of ``to``, ``cuda``, ``half`` and the like on a module; None for another method."""
    assert isinstance(node.func, cst.Attribute)
    receiver = node.func.value
    module = cst.Name("self") if syntax.is_super(receiver) else rw.visit(receiver)
    if method in MOVES and not _casts(rw, node):
        return module  # arrays are where they are put
    if method in TYPES and not node.args:
        if method == "double":
            what = "a module of float64 needs x64, which is off unless it is switched on"
            raise Failure(node, "DTY002", what, "stay with float32, or cast to another type")
        rw.ctx.helpers.use("jnp")
        given = [cst.Arg(syntax.parse(f"jnp.{TYPES[method]}"))]
    elif method == "to":
        given = [rw.visit(one) for one in _kept(rw, node)]
    else:
        return None
    name = rw.ctx.helpers.need(module_file("rules.compat.casting"), "cast_module")
    rw.ctx.effect(node)
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(module), *given])


def _casts(rw: Rewriter, node: cst.Call) -> bool:
    """Whether ``to(…)`` may be given a type."""
    assert isinstance(node.func, cst.Attribute)
    return node.func.attr.value == "to" and bool(_kept(rw, node))


def _kept(rw: Rewriter, node: cst.Call) -> list[cst.Arg]:
    """The arguments of ``to(…)`` that may be a type."""
    places = ("device", "non_blocking", "memory_format", "copy")
    named = [a for a in node.args if a.keyword is None or a.keyword.value not in places]
    kept = []
    for one in named:
        kind = rw.ctx.kind(one.value)
        inner = kind.inner if isinstance(kind, k.Optional) else kind
        if one.star or one.keyword is not None or isinstance(inner, (k.DType, k.Tensor)):
            kept.append(one)
        elif not is_place(rw, one.value) and not isinstance(kind, (k.Const, k.Scalar)):
            kept.append(one)
    return kept
