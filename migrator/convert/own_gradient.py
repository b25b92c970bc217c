"""Tensors from outside that code under ``no_grad`` writes to: they keep the gradient that they had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation
from migrator.convert.called_untracked import gradients_off
from migrator.convert.context import Context, Failure
from migrator.convert.overriding import overriding
from migrator.convert.rewriter import Rewriter
from migrator.convert.untracked import is_another_name
from migrator.convert.untracked import stopped as constant
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_SAME = (
    frozenset(
        f"Tensor.{name}"
        for name in "contiguous to type type_as float double half bfloat16 cpu cuda requires_grad_ flatten ravel positive real "
        "conj resolve_conj resolve_neg".split()
    )
    | frozenset(
        f"torch.{name}"
        for name in "flatten ravel positive real conj resolve_conj as_tensor atleast_1d atleast_2d atleast_3d".split()
    )
    | frozenset(
        f"torch.nn.functional.{name}"
        for name in "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split()
    )
)
"""What gives the very tensor that it is given, where nothing is to be done."""
_SAME_LAYERS = frozenset(
    f"torch.nn.{name}" for name in "Identity Dropout Dropout1d Dropout2d Dropout3d".split()
)


def check_own_gradient(ctx: Context, call: cst.Call, target: cst.BaseExpression) -> None:
    """Raise a Failure where ``z = y.mul_(2)`` under ``no_grad`` gives a y from outside, which keeps the gradient that it had."""
    if isinstance(target, cst.Name) and is_from_outside(ctx, call, target):
        what = f"`{target.value}`, changed under no_grad, keeps the gradient that it had"
        raise Failure(call, "MUT002", what, "give the change a statement of its own")


def check_same(ctx: Context, value: cst.BaseExpression) -> None:
    """Raise a Failure where ``z = y.float()`` under ``no_grad`` may be y itself, and z is read where there are gradients."""
    frame, tree = ctx.frame, ctx.source.index
    if isinstance(value, (cst.Tuple, cst.List, cst.Dict)):
        for part in value.elements:
            check_same(ctx, part.value)
    elif isinstance(value, cst.IfExp):
        check_same(ctx, value.body)
        check_same(ctx, value.orelse)
    if frame is None or not isinstance(value, cst.Call) or not tree.has(value):
        return
    names_given = (one for one in _given_back(ctx, value) if isinstance(one, cst.Name))
    given = next((one for one in names_given if is_from_outside(ctx, value, one)), None)
    if given is None:
        return
    line = next(one for one in reversed(tree.around(value)) if not isinstance(one, _PARTS))
    if isinstance(line, cst.Assign):
        names = {name for to in line.targets for name in syntax.names(to.target)}
        block = [one for one in tree.around(line) if isinstance(one, cst.With)][-1:]
        read = [n for n in tree.within(frame.info.node.body, cst.Name) if n.value in names]
        later = (n for n in read if tree.place(n) > tree.place(line))
        if not block or all(tree.holds(block[0], n) for n in later):
            return
    elif not isinstance(line, cst.Return):
        return
    what = f"under no_grad this may give `{given.value}` itself, which keeps its gradient"
    raise Failure(value, "MUT002", what, "detach it, or leave the line out of the block")


def _given_back(ctx: Context, call: cst.Call) -> Iterator[cst.BaseExpression]:
    """What a call may give back as it is."""
    name = ctx.facts.callee(call) or ""
    kind = ctx.kind(call.func)
    layer = isinstance(kind, k.Module) and _may_be_same(kind)
    if name in _SAME or layer:
        method = name.startswith("Tensor.") and isinstance(call.func, cst.Attribute)
        inner = call.func.value if method else call.args[0].value if call.args else None  # type: ignore[attr-defined]
        if isinstance(inner, cst.Call):
            yield from _given_back(ctx, inner)
        elif inner is not None:
            yield inner
        return
    info = ctx.facts.names.get(name)
    for one in (info, *overriding(ctx, info)) if isinstance(info, FunctionInfo) else ():
        if ctx.facts.tree.has(one.node) and _returns_argument(ctx, one):
            yield from (item.value for item in call.args)
            return


def _may_be_same(kind: k.Module) -> bool:
    """Whether a layer may give back its argument as it is: one of several may, or all that a Sequential has."""
    if kind.cls == "torch.nn.Sequential":
        parts = [one for name, one in kind.args if name.isdigit()] or [kind.item]
        return all(isinstance(one, k.Module) and _may_be_same(one) for one in parts)
    return kind.cls in _SAME_LAYERS or any(_may_be_same(one) for one in kind.among)


def _returns_argument(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function returns an argument as it is."""
    lines = ctx.facts.tree.within(info.node.body, cst.Assign)
    given = {name for one in lines for to in one.targets for name in syntax.names(to.target)}
    params = set(syntax.parameters(info.node)) - given
    returned = (one.value for one in ctx.facts.tree.within(info.node, cst.Return))
    for arm in _arms(returned):
        same = _given_back(ctx, arm) if isinstance(arm, cst.Call) else [arm]
        if any(isinstance(one, cst.Name) and one.value in params for one in same):
            return True
    return False


_PARTS = (cst.Tuple, cst.List, cst.Dict, cst.Element, cst.DictElement, cst.IfExp)
"""What holds a value in a line."""


def _arms(values: Iterable[cst.BaseExpression | None]) -> Iterator[cst.BaseExpression]:
    for one in values:
        if isinstance(one, cst.IfExp):
            yield from _arms([one.body, one.orelse])
        elif isinstance(one, cst.BooleanOperation):
            yield from _arms([one.left, one.right])
        elif one is not None:
            yield one


def is_from_outside(ctx: Context, call: cst.CSTNode, name: cst.Name) -> bool:
    """Whether a name in a call under ``no_grad`` stands for what is computed outside, perhaps with a gradient."""
    from migrator.convert.handed_on import may_run

    frame, tree = ctx.frame, ctx.source.index
    if frame is None or not gradients_off(ctx) or ctx.in_init or not tree.has(call):
        return False
    kind = ctx.kind(name)
    if not is_another_name(ctx, name) or getattr(kind, "dtype", None) in ("int", "bool"):
        return False
    handed = name.value in syntax.parameters(frame.info.node)
    if (handed or frame.info.owner is not None) and not may_run(ctx, frame.info):
        return False
    for around in tree.around(call):
        if not isinstance(around, cst.With) or not tree.holds(frame.info.node, around):
            continue
        for one in tree.within(around.body, cst.Assign):
            names = [n for to in one.targets for n in syntax.names(to.target)]
            before = tree.place(one) < tree.place(call) and not tree.holds(one, call)
            if name.value in names and before:
                return False  # it is computed without a gradient
    return True


def adds(rw: Rewriter, node: cst.AugAssign) -> bool:
    """Whether a write under ``no_grad`` adds to a tensor: its own gradient is that of a sum with a constant."""
    name = isinstance(node.target, (cst.Name, cst.Attribute))
    adds = isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign))
    return name and adds and not rw.ctx.gradient_if


def with_constant(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``total += loss`` → ``total += stop_gradient(loss)``."""
    from migrator.convert.passes.functions import stopped

    check_mutation(rw.ctx, node, node.target)
    value = rw.visit(node.value)
    if isinstance(node.value, cst.Attribute) and isinstance(rw.ctx.kind(node.value), k.Tensor):
        value = constant(rw, value)  # of a parameter, which keeps its gradient elsewhere
    else:
        value = stopped(rw, value, node.value)
    target = rw.rebuild(node.target) if isinstance(node.target, cst.Attribute) else node.target
    return syntax.changed(node, target=target, value=value)
