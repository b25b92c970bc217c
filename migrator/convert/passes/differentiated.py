"""Functions that are handed to torch.func: JAX runs them on tracers, which must not get into the state of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import bound_by
from migrator.convert.context import Context, Failure
from migrator.convert.host_masks import owner_of
from migrator.convert.own_state import called_function
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.updates import updated_by
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules import definitions

_TRANSFORMS = frozenset(f"torch.func.{name}" for name in "vjp grad grad_and_value jacrev".split())
_DROPPING = ("Dropout", "AlphaDropout", "FeatureAlphaDropout", "RReLU")
_NORMALISING = ("BatchNorm", "SyncBatchNorm")


@converts(cst.Call, called=_TRANSFORMS)
def differentiated(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.func.vjp(f, x)``, where ``f`` computes and does nothing else."""
    ctx = rw.ctx
    if ctx.facts.callee(node) not in _TRANSFORMS:
        return None
    given = node.args[0].value if node.args and not node.args[0].star else None
    body = _body(ctx, given) if given is not None else None
    what = next(_effects(ctx, body, set()), None) if body is not None else None
    if what is None:
        return None
    raise Failure(
        node,
        "API002",
        f"what is differentiated {what}, and JAX runs it on tracers, which no state may keep",
        "compute the gradient of a part that has no state, or run it in eval mode with layers of its own",
    )


def _body(ctx: Context, node: cst.BaseExpression) -> cst.CSTNode | None:
    if isinstance(node, cst.Lambda):
        return node.body
    kind = ctx.kind(node)
    info = ctx.facts.names.get(kind.name or "") if isinstance(kind, k.Function) else None
    if isinstance(kind, k.Module):
        own = ctx.facts.classes.get(kind.cls)
        info = own.method("forward") if own is not None else None
    return info.node.body if info is not None and info.settled is None else None


def _effects(ctx: Context, body: cst.CSTNode, seen: set[cst.CSTNode]) -> Iterator[str]:
    """What a function does beside computing, as far as that is known."""
    if body in seen:
        return
    seen.add(body)
    for node in syntax.walk(body):
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign)):
            target: Any = bound_by(node)
            while isinstance(target, cst.Subscript):
                target = target.value
            if isinstance(target, cst.Attribute) and syntax.is_own(target, target.attr.value):
                yield f"keeps `{syntax.code(target)}`"
        elif isinstance(node, cst.Attribute) and _is_set_before(ctx, node):
            yield f"reads `{syntax.code(node)}`, which may hold what was computed before"
        elif isinstance(node, cst.Call):
            yield from _of_call(ctx, node, seen)


def _is_set_before(ctx: Context, node: cst.Attribute) -> bool:
    """``self.feature`` that a method beside the constructor assigns: torch differentiates through it, a function does not."""
    owner = owner_of(ctx, node)
    name = node.attr.value
    if owner is None or not isinstance(owner.attribute(name), (k.Tensor, k.Unknown, k.Optional)):
        return False
    return any(
        isinstance(one.target, cst.Attribute) and syntax.is_own(one.target, name)
        for info in owner.lineage()
        for method, function in info.methods.items()
        if method != "__init__" and function.settled is None
        for one in ctx.facts.tree.within(function.node.body, cst.AssignTarget, cst.AnnAssign)
    )


def _of_call(ctx: Context, call: cst.Call, seen: set[cst.CSTNode]) -> Iterator[str]:
    name, kind = ctx.facts.callee(call) or "", ctx.kind(call.func)
    if any(rule.draws for rule in definitions.ops(name)):
        yield f"draws random numbers ({name})"
    info = called_function(ctx, call)
    if info is not None and info.settled is None:
        yield from _effects(ctx, info.node.body, seen)
    elif isinstance(kind, k.Module):
        yield from _of_layer(ctx, kind, seen)
    elif info is not None:
        written = updated_by(ctx, call)
        if written:
            yield f"writes to `{min(written)}`"


def _of_layer(ctx: Context, kind: k.Module, seen: set[cst.CSTNode]) -> Iterator[str]:
    """What a layer does, and the layers it is made of."""
    own = ctx.facts.classes.get(kind.cls)
    forward: FunctionInfo | None = own.method("forward") if own is not None else None
    if forward is not None and forward.settled is None:
        yield from _effects(ctx, forward.node.body, seen)
        return
    last = kind.cls.rpartition(".")[2]
    if kind.cls.startswith("torch.") and last.startswith(_DROPPING):
        yield f"runs a layer that draws ({last})"
    if kind.cls.startswith("torch.") and last.startswith(_NORMALISING):
        yield f"runs a layer that keeps running statistics ({last})"
    for _, part in kind.args:
        if isinstance(part, k.Module):
            yield from _of_layer(ctx, part, seen)
    for part in kind.among:
        if isinstance(part, k.Module):
            yield from _of_layer(ctx, part, seen)
