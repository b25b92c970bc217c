"""Functions that write to a tensor and are handed around: ``fn(m.weight)``, where ``fn`` is ``nn.init.zeros_``.

In the output they return the new value, so the call becomes an assignment. Who calls what may be one of them and drops
the result would initialise nothing, and is told.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax, views
from migrator.convert.alias import check_mutation
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.initializers import LAYOUT_FREE, writes_first_parameter
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.python import PARTIAL

_INIT = "torch.nn.init."
_ASIDE = frozenset(f"{_INIT}{name}" for name in ("calculate_gain", "_calculate_fan_in_and_fan_out"))


@converts(cst.Expr, values=(cst.Call,))
def called(rw: Rewriter, node: cst.Expr) -> Any:
    """``fn(m.weight)`` → ``m.weight[...] = fn(m.weight[...])``."""
    ctx, call = rw.ctx, node.value
    if not isinstance(call, cst.Call) or not call.args or ctx.frame is None:
        return None
    if call.args[0].keyword or call.args[0].star:
        return None
    if isinstance(call.func, cst.Attribute) and not ctx.is_self(call.func.value):
        return None
    writes = _writes(ctx, call.func)
    if writes is None:
        if not _may_initialise(ctx, call):
            return None
        if len(call.args) > 1:
            return _refused(rw, node, call)
        writes = True
    if not writes:
        if not _may_be_tensor(ctx.kind(call.args[0].value)):
            return None
        what = "what is called here may be a function that initialises its argument"
        raise Failure(node, "MUT002", what, "name the function that is meant")
    target = call.args[0].value
    target = views.undressed(target)
    unknown = targets.found_at_run_time(ctx, target)
    if unknown is not None:
        tensor = targets.whole(rw.ctx)
        ctx.facts.kinds[tensor] = k.TENSOR
        first = syntax.changed(call.args[0], value=tensor)
        return targets.initialized(rw, unknown, _value(rw, call, first))
    if not isinstance(ctx.kind(target), k.Tensor):
        what = "what a function that is handed on initialises is not known to be a tensor"
        raise Failure(node, "MUT002", what, "annotate it, or name the function that is meant")
    if not isinstance(target, cst.Attribute) and not _layout_free(ctx, call.func):
        what = f"the axes of `{syntax.code(target)}` count here, and Flax keeps the weight of a Linear transposed"
        raise Failure(node, "API006", what, "name the weight: `fn(layer.weight)`")
    check_mutation(ctx, call, target)
    first = syntax.changed(call.args[0], value=targets.current(rw, target))
    value = _value(rw, call, first, visited=True)
    role = getattr(ctx.kind(target), "role", "")
    return targets.assign(rw, target, value, data=role == "param")


def _may_initialise(ctx: Context, call: cst.Call) -> bool:
    """Whether a constructor drops the result of a function that it is handed, and that it hands its parameters."""
    info, func = ctx.frames[-1].info, call.func
    if not isinstance(func, cst.Name) or func.value not in info.params:
        return False
    kind = ctx.facts.kind(func)
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    unknown = isinstance(inner, k.Unknown) or inner == k.NAMELESS
    if not unknown or not ctx.plan.builds_time(info):
        return False
    kinds = [ctx.kind(arg.value) for arg in call.args]
    kinds = [one.inner if isinstance(one, k.Optional) else one for one in kinds]
    return all(isinstance(one, k.Tensor) and one.role == "param" for one in kinds)


def _refused(rw: Rewriter, node: cst.Expr, call: cst.Call) -> Any:
    """``init_fn(self.weight, self.bias)``: which of them it writes is not known, so that the output says so in time."""
    ctx, name = rw.ctx, syntax.code(call.func)
    handed = ctx.frames[-1].info.handed.get(name, {}).values()
    if any(one != k.NONE for one in handed):
        what = f"`{name}` may initialise any of the parameters it is handed"
        raise Failure(node, "MUT002", what, "name the function that is meant")
    what = f"what `{name}` initialises is not known, and nothing here hands one: the output raises where it is called"
    advice = f"assign what `{name}` returns to the parameters that it is meant to initialise"
    ctx.report(node, "MUT002", what, advice, severity="warning", blocks=False)
    text = f"`{name}` would have to return the new values of {', '.join(syntax.code(a.value) for a in call.args)}"
    error = syntax.parse(f"NotImplementedError({text!r})")
    return cst.Raise(error)


def _may_be_tensor(kind: k.Kind) -> bool:
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(inner, (k.Tensor, k.Unknown, k.Other))


def _value(rw: Rewriter, call: cst.Call, first: cst.Arg, visited: bool = False) -> cst.Call:
    """The call as it gives the new value."""
    given = first if visited else syntax.changed(first, value=rw.visit(first.value))
    args = [given, *(rw.visit(arg) for arg in call.args[1:])]
    return syntax.changed(syntax.with_args(call, args), func=rw.visit(call.func))


def _writes(ctx: Context, func: cst.BaseExpression) -> bool | None:
    """Whether an expression is a function that writes to its first argument; False where it may be one, None if not."""
    kind = ctx.facts.kind(func)
    if _is_writer(ctx, kind):
        return True
    info = ctx.frames[-1].info
    if isinstance(func, cst.Name) and func.value in info.params:
        kinds = list(info.handed.get(func.value, {}).values())
        found = [_is_writer(ctx, one, plain=True) for one in kinds]
        if any(found):
            return all(found) and not info.shared
        if kinds and all(isinstance(one, k.Function) and one != k.NAMELESS for one in kinds):
            return None
    if isinstance(kind, k.Unknown) or kind == k.NAMELESS:
        return False if _are_values(ctx) else None
    return None


def _layout_free(ctx: Context, func: cst.BaseExpression) -> bool:
    """Whether what may be called gives every number of a tensor the same distribution."""
    kinds = [ctx.facts.kind(func)]
    info = ctx.frames[-1].info
    if isinstance(func, cst.Name) and info.handed.get(func.value):
        kinds = list(info.handed[func.value].values())
    names = []
    for kind in kinds:
        name = kind.name.removeprefix(PARTIAL) if isinstance(kind, k.Function) else ""
        if name in ctx.facts.lambdas and isinstance(ctx.facts.lambdas[name][0].body, cst.Call):
            name = ctx.facts.callee(ctx.facts.lambdas[name][0].body) or ""  # type: ignore[arg-type]
        names.append(name)
    return all(n.startswith(_INIT) and n.removeprefix(_INIT) in LAYOUT_FREE for n in names)


def _is_writer(ctx: Context, kind: k.Kind, plain: bool = False) -> bool:
    """Whether a kind is that of such a function; with ``plain`` also of one that a pass knows by its name."""
    if not isinstance(kind, k.Function):
        return False
    name = kind.name
    if name.startswith(PARTIAL + _INIT) and name.removeprefix(PARTIAL) not in _ASIDE:
        return True
    if plain and name.startswith(_INIT) and name not in _ASIDE:
        return True
    if name in ctx.facts.lambdas:
        return is_initializing(ctx, ctx.facts.lambdas[name][0])
    info = ctx.facts.names.get(name)
    return plain and info is not None and info.owner is None and writes_first_parameter(ctx, info)


def is_initializing(ctx: Context, node: cst.Lambda) -> bool:
    """``lambda w: nn.init.normal_(w, std=0.02)``."""
    call, params = node.body, node.params.params
    if not isinstance(call, cst.Call) or not call.args or not params:
        return False
    name, first = ctx.facts.callee(call) or "", call.args[0].value
    known = name.startswith(_INIT) and name not in _ASIDE
    return known and isinstance(first, cst.Name) and first.value == params[0].name.value


def stays_here(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a function that initialises goes nowhere but to a name, or to a function of the file."""
    around = ctx.facts.tree.around(node)
    if not around:
        return False
    if isinstance(around[-1], cst.Assign):
        return all(isinstance(one.target, cst.Name) for one in around[-1].targets)
    call = around[-2] if isinstance(around[-1], cst.Arg) and len(around) > 1 else None
    if not isinstance(call, cst.Call):
        return False
    kind = ctx.facts.kind(call.func)
    info: FunctionInfo | None = (
        ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    )
    return info is not None and info.settled is None


def _are_values(ctx: Context) -> bool:
    """Whether the file hands a function of ``nn.init`` around."""
    if ctx.hands_initializers is None:
        ctx.hands_initializers = any(
            _is_value(ctx, n) for n in ctx.source.index.of_type(cst.Attribute)
        )
    return ctx.hands_initializers


def _is_value(ctx: Context, node: cst.Attribute) -> bool:
    if not node.attr.value.endswith("_"):
        return False
    kind = ctx.facts.kind(node)
    if not isinstance(kind, k.Function) or not kind.name.startswith(_INIT):
        return False
    above = ctx.facts.tree.around(node)[-1]
    if isinstance(above, cst.Call) and above.func is node:
        return isinstance(ctx.facts.tree.around(above)[-1], cst.Lambda)
    return True
