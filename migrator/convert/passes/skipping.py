"""Stochastic depth: ``if self.training and torch.rand(1) < self.p: return x`` before what a block adds to x.

Python cannot branch on what is drawn while JAX traces. Where the rest of the function changes nothing but what it
returns, and returns x with something added, both are computed and one is taken: outside of training nothing is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_PURE_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in "Linear Conv1d Conv2d Conv3d LayerNorm RMSNorm GroupNorm Dropout Identity ReLU ReLU6 GELU SiLU "
    "Sigmoid Tanh LeakyReLU ELU Mish Hardswish Softplus Softmax GLU MultiheadAttention".split()
)
"""Layers whose forward pass writes to nothing."""
_PURE_BUILTINS = frozenset(
    f"builtins.{name}" for name in "len int float range tuple min max".split()
)
HOOKS = frozenset(
    "spectral_norm weight_norm register_forward_hook register_forward_pre_hook parametrizations".split()
)
"""What a file names that changes a layer's call."""
ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
_OPAQUE = (
    cst.Raise,
    cst.Assert,
    cst.Yield,
    cst.Await,
    cst.FunctionDef,
    cst.ClassDef,
    cst.Lambda,
    cst.Try,
    cst.While,
    cst.With,
    cst.Del,
    cst.Global,
    cst.Nonlocal,
    cst.NamedExpr,
    cst.ListComp,
    cst.Expr,
)
_CHECKS = (cst.Raise, cst.Assert)


@dataclass
class Skip:
    """An ``if`` that returns early by a draw, and the return at the end of its function."""

    test: cst.BooleanOperation
    draw: cst.Call
    unchanged: cst.Name
    end: cst.Return
    rebound: bool
    flag: str = ""
    kept: str = ""


def skips(ctx: Context) -> dict[cst.CSTNode, Skip]:
    """The early returns of a file that can be converted, by their ``if``; what was said against them is taken back."""
    if ctx.skips is None:
        ctx.skips = {}
        tree = ctx.source.index
        if {"training", "rand"} <= ctx.words and HOOKS.isdisjoint(ctx.words):
            for info in ctx.facts.functions.values():
                ctx.skips |= _early(ctx, info)
        for found in ctx.skips.values():
            for node in [n for n in ctx.blocked if tree.has(n) and tree.holds(found.test, n)]:
                del ctx.blocked[node]
    return ctx.skips


def _early(ctx: Context, info: FunctionInfo) -> dict[cst.CSTNode, Skip]:
    """The only early return of a forward pass, if it is one by a draw."""
    owner, body = info.owner, info.node.body
    if owner is None or not owner.torch_base or not isinstance(body, cst.IndentedBlock):
        return {}
    if info.node.name.value != "forward" or info.outer is not None or info.node.decorators:
        return {}
    if derived_from(ctx, owner):
        return {}
    place = next((n for n, line in enumerate(body.body) if isinstance(line, cst.If)), None)
    if place is None:
        return {}
    node, rest = body.body[place], body.body[place + 1 :]
    assert isinstance(node, cst.If)
    unchanged, end = _only_return(node.body), _returned(rest[-1]) if rest else None
    draw = _drawn(ctx, node.test)
    if node.orelse is not None or draw is None or end is None or end.value is None:
        return {}
    if not isinstance(unchanged, cst.Name) or not isinstance(ctx.kind(unchanged), k.Tensor):
        return {}
    if not pure(ctx, rest, {info}) or not _adds(rest, unchanged.value):
        return {}
    rebound = any(unchanged.value in names_bound(line) for line in rest)
    assert isinstance(node.test, cst.BooleanOperation)
    return {node: Skip(node.test, draw, unchanged, end, rebound)}


def _returned(line: cst.BaseStatement) -> cst.Return | None:
    """The ``return`` that a line is."""
    only = (
        line.body[0] if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1 else None
    )
    return only if isinstance(only, cst.Return) else None


def _only_return(body: cst.BaseSuite) -> cst.BaseExpression | None:
    found = _returned(body.body[0]) if len(body.body) == 1 else None  # type: ignore[arg-type]
    return found.value if found is not None else None


def _drawn(ctx: Context, test: cst.BaseExpression) -> cst.Call | None:
    """``torch.rand(1)`` of ``self.training and torch.rand(1) < p``; also of no dimensions, and its item."""
    if not isinstance(test, cst.BooleanOperation) or not isinstance(test.operator, cst.And):
        return None
    order = test.right
    if syntax.code(syntax.unparenthesized(test.left)) != "self.training":
        return None
    if not isinstance(order, cst.Comparison) or len(order.comparisons) != 1:
        return None
    if not isinstance(order.comparisons[0].operator, ORDERS):
        return None
    sides = [order.left, order.comparisons[0].comparator]
    draws = [single_draw(ctx, side) for side in sides]
    found = [draw for draw in draws if draw is not None]
    other = next((side for side, draw in zip(sides, draws, strict=True) if draw is None), None)
    if len(found) != 1 or other is None or not is_number(ctx.kind(other)):
        return None
    return found[0]


def is_number(kind: k.Kind) -> bool:
    if isinstance(kind, k.Const):
        return isinstance(kind.value, (int, float))
    if isinstance(kind, k.Unknown):
        return True  # anything but a number, or a tensor of one, is an error in torch
    return isinstance(kind, k.Scalar) and kind.type in ("int", "float", "number")


def single_draw(ctx: Context, node: cst.BaseExpression) -> cst.Call | None:
    """A call that draws a single number."""
    if not isinstance(node, cst.Call):
        return None
    name = ctx.facts.callee(node)
    if name == "Tensor.item" and isinstance(node.func, cst.Attribute) and not node.args:
        return single_draw(ctx, node.func.value)
    if name != "torch.rand" or len(node.args) != 1 or node.args[0].keyword or node.args[0].star:
        return None
    return node if syntax.code(node.args[0].value) in ("1", "[]", "()", "[1]", "(1,)") else None


# --- what the rest does ------------------------------------------------------------------------------------------------


def pure(ctx: Context, lines: Any, seen: set[FunctionInfo], anywhere: bool = False) -> bool:
    """Whether statements do nothing but bind names, and return at their end alone.

    ``anywhere``: they may return before, and insist on what they are given."""
    last, told = _returned(lines[-1]), set()
    for line in lines:
        for node in syntax.walk(line):
            if isinstance(node, _CHECKS) and anywhere:
                told |= {id(one) for one in syntax.walk(node)}
            if id(node) in told and not isinstance(node, cst.NamedExpr):
                continue
            if isinstance(node, _OPAQUE) or (
                isinstance(node, cst.Return) and node is not last and not anywhere
            ):
                return False
            if isinstance(node, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
                if not all(isinstance(one, cst.Name) for one in _targets(node)):
                    return False
            if isinstance(node, cst.For) and not isinstance(node.target, cst.Name):
                return False
            if isinstance(node, cst.Call) and not pure_call(ctx, node, seen, anywhere):
                return False
    return True


def _targets(node: cst.Assign | cst.AugAssign | cst.AnnAssign) -> list[cst.BaseExpression]:
    given = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
    found: list[cst.BaseExpression] = []
    for one in given:
        found += (
            [e.value for e in one.elements] if isinstance(one, (cst.Tuple, cst.List)) else [one]
        )
    return found


def pure_call(
    ctx: Context, call: cst.Call, seen: set[FunctionInfo], anywhere: bool = False
) -> bool:
    """Whether a call does nothing but compute; ``anywhere``: see ``pure``."""
    kind = ctx.kind(call.func)
    if isinstance(kind, k.Module):
        return _pure_module(ctx, kind, seen, anywhere)
    name = ctx.facts.callee(call) or ""
    if name.startswith("Tensor."):
        return not name.endswith("_") and not any(a.star for a in call.args)
    if name.startswith("torch.nn.functional."):
        norm = name.rpartition(".")[2] in ("batch_norm", "instance_norm", "embedding")
        return not norm and not any((a.keyword and a.keyword.value == "inplace") for a in call.args)
    if name.startswith("torch.") and name.count(".") == 1:
        return not name.endswith("_") and not any(
            a.keyword and a.keyword.value == "out" for a in call.args
        )
    info = ctx.facts.names.get(name)
    return name in _PURE_BUILTINS or (
        info is not None and _pure_function(ctx, info, seen, anywhere)
    )


def _pure_module(ctx: Context, kind: k.Module, seen: set[FunctionInfo], anywhere: bool) -> bool:
    if kind.cls == "torch.nn.Sequential":
        children = [one for _, one in kind.args]
        return bool(children) and all(
            isinstance(one, k.Module) and _pure_module(ctx, one, seen, anywhere) for one in children
        )
    if kind.cls in _PURE_LAYERS:
        return k.in_place(kind) is False or "inplace" not in ctx.words
    info = ctx.facts.classes.get(kind.cls)
    if info is None or info.settled is not None or info.torch_base != "torch.nn.Module":
        return False
    forward = info.method("forward")
    return (
        forward is not None
        and not derived_from(ctx, info)
        and _pure_function(ctx, forward, seen, anywhere)
    )


def derived_from(ctx: Context, info: ClassInfo) -> bool:
    """Whether a class may have other parts and methods than its own lines say."""
    return any(one is not info and info in one.lineage() for one in ctx.facts.classes.values())


def _pure_function(
    ctx: Context, info: FunctionInfo, seen: set[FunctionInfo], anywhere: bool
) -> bool:
    body = info.node.body
    if info.settled is not None or info in seen or not isinstance(body, cst.IndentedBlock):
        return False
    lines = [s for s in body.body if not syntax.is_docstring(s)]
    return not info.node.decorators and bool(lines) and pure(ctx, lines, seen | {info}, anywhere)


def names_bound(line: cst.BaseStatement) -> set[str]:
    """The names that a statement binds."""
    found: set[str] = set()
    for node in syntax.walk(line):
        if isinstance(node, (cst.Assign, cst.AugAssign, cst.AnnAssign)):
            found |= {one.value for one in _targets(node) if isinstance(one, cst.Name)}
        elif isinstance(node, cst.For):
            found |= set(syntax.names(node.target))
    return found


def _adds(lines: Any, name: str) -> bool:
    """Whether what is returned is what a name held before, with something added to it."""
    same = {name}
    for line in lines[:-1]:
        only = (
            line.body[0]
            if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
            else None
        )
        if isinstance(only, cst.Assign) and len(only.targets) == 1:
            target = only.targets[0].target
            if isinstance(target, cst.Name) and _is_sum(only.value, same):
                same.add(target.value)
                continue
        same -= names_bound(line)
    end = _returned(lines[-1])
    return end is not None and end.value is not None and _is_sum(end.value, same)


def _is_sum(node: cst.BaseExpression, same: set[str]) -> bool:
    if isinstance(node, cst.Name):
        return node.value in same
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Add):
        return False
    return _is_sum(node.left, same) or _is_sum(node.right, same)


# --- the output -------------------------------------------------------------------------------------------------------


@converts(cst.If)
def early(rw: Rewriter, node: cst.If) -> Any:
    """The ``if`` → ``skip = not self.deterministic and self.rngs.uniform(()) < self.p``."""
    found = skips(rw.ctx).get(node)
    if found is None:
        return None
    order = found.test.right
    assert isinstance(order, cst.Comparison)
    drawn = rw.visit(found.draw)
    number = syntax.with_args(drawn, [cst.Arg(cst.Tuple([]))])
    first = order.comparisons[0]
    left, right = (
        number if single_draw(rw.ctx, side) is not None else rw.visit(side)
        for side in (order.left, first.comparator)
    )
    compared = syntax.changed(
        order, left=left, comparisons=[syntax.changed(first, comparator=right)], lpar=[], rpar=[]
    )
    test = syntax.changed(
        found.test, left=rw.visit(found.test.left), right=compared, lpar=[], rpar=[]
    )
    found.flag = untaken(rw, "skip")
    lines = [assigned(found.flag, test)]
    if found.rebound:
        found.kept = untaken(rw, "unchanged")
        lines.append(assigned(found.kept, cst.Name(found.unchanged.value)))
    return [syntax.changed(lines[0], leading_lines=node.leading_lines), *lines[1:]]


@converts(cst.Return)
def end(rw: Rewriter, node: cst.Return) -> Any:
    """The ``return`` at the end → ``return skipped(skip, x, x + y)``."""
    found = next((one for one in skips(rw.ctx).values() if one.end is node and one.flag), None)
    if found is None or node.value is None:
        return None
    value = syntax.unparenthesized(rw.visit(node.value))
    name = rw.ctx.helpers.need(module_file("rules.compat.skipping"), "skipped")
    given = (cst.Name(found.flag), cst.Name(found.kept or found.unchanged.value), value)
    return syntax.changed(
        node, value=syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(one) for one in given])
    )


def assigned(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])


def untaken(rw: Rewriter, hint: str) -> str:
    name = hint
    while name in rw.ctx.words or name in rw.ctx.helpers.taken:
        name += "_"
    return name
