"""Writes to numpy arrays, which share their memory with the tensors they were made of, or that were made of them.

``torch.from_numpy`` and ``Tensor.numpy`` copy nothing: who writes to the one writes to the other. In JAX neither sees it,
and what numpy gets of an array may only be read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import Write, check_calls, innermost, root_name
from migrator.convert.context import Context, Failure
from migrator.convert.memory import Aliases, aliases
from migrator.convert.parts import shared, whole
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.sharing import NUMPY_VIEWS
from migrator.infer import kinds as k

_ARRAY = k.Other("numpy.ndarray")
_METHODS = frozenset("fill itemset partition put resize setfield sort".split())
"""Methods of numpy arrays that write."""
_FUNCTIONS = frozenset(
    f"numpy.{name}" for name in "copyto fill_diagonal place put put_along_axis putmask".split()
) | frozenset({"np.random.shuffle", "numpy.random.shuffle", "random.shuffle"})
"""Functions that write to their first argument."""
_CROSSING = frozenset({"Tensor.numpy", "torch.from_numpy", "torch.as_tensor", "torch.asarray"})
_ATTRIBUTES = frozenset("T flat real imag".split())


@converts(cst.AugAssign, cst.Call)
@converts(cst.Assign, targets=(cst.Subscript,))
def written(rw: Rewriter, node: cst.Assign | cst.AugAssign | cst.Call) -> None:
    """Raise a Failure for a write to a numpy array that a tensor sees."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.statements:
        return
    for target in _written(ctx, node):
        name = root_name(target)
        facts = aliases(ctx, innermost(ctx))
        state = facts.before.get(ctx.statements[-1].node)
        if name is not None and state is not None:
            _check(ctx, facts, node, name.value)


@converts(cst.Call, called=("Tensor.numpy", "numpy.asarray"))
def writable(rw: Rewriter, node: cst.Call) -> Any:
    """``a = x.numpy()`` of an array that is written later → ``np.array(x)``: numpy may only read what JAX holds."""
    ctx = rw.ctx
    name = ctx.facts.callee(node) or ""
    if name not in ("Tensor.numpy", "numpy.asarray") or ctx.frame is None or not ctx.statements:
        return None
    given = node.func.value if isinstance(node.func, cst.Attribute) else node
    if name == "numpy.asarray":
        if not node.args or node.args[0].star or node.args[0].keyword is not None:
            return None
        given = node.args[0].value
    fresh = isinstance(given, (cst.BinaryOperation, cst.UnaryOperation))
    known = name == "Tensor.numpy" or fresh or isinstance(ctx.kind(given), k.Tensor)
    if not known or not _is_written_later(ctx, node):
        return None
    ctx.helpers.use("np")
    made = cst.Call(syntax.parse("np.array"))
    rest = [rw.visit(a) for a in node.args[1:]] if name == "numpy.asarray" else []
    return syntax.with_args(made, [cst.Arg(syntax.unparenthesized(rw.visit(given))), *rest])


def _written(ctx: Context, node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The numpy arrays that a node writes to."""
    if isinstance(node, cst.Assign):
        for one in node.targets:
            if isinstance(one.target, cst.Subscript) and _is_array(ctx, one.target.value):
                yield one.target
    elif isinstance(node, cst.AugAssign):
        base = node.target.value if isinstance(node.target, cst.Subscript) else node.target
        if _is_array(ctx, base):
            yield node.target
    elif isinstance(node, cst.Call):
        func, name = node.func, ctx.facts.callee(node) or syntax.code(node.func)
        if isinstance(func, cst.Attribute) and func.attr.value in _METHODS:
            if _is_array(ctx, func.value):
                yield func.value
        if name in _FUNCTIONS and node.args and _is_array(ctx, node.args[0].value):
            yield node.args[0].value
        for item in node.args if name.startswith("numpy.") else ():
            if item.keyword is not None and item.keyword.value == "out":
                yield item.value


def _is_array(ctx: Context, node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Subscript):
        node = node.value
    return ctx.kind(node) == _ARRAY


def _check(ctx: Context, facts: Aliases, node: cst.CSTNode, name: str) -> None:
    statement = ctx.statements[-1].node
    state = facts.before[statement]
    memory, later = state.get(name, frozenset()), facts.read_after(statement)
    for other, theirs in state.items():
        if other == name or other not in later or not shared(memory, theirs):
            continue
        if _reads_tensor(ctx, facts, other):
            raise Failure(
                node,
                "MUT001",
                f"writing `{name}` also changes the tensor `{other}`, which is read later",
                f"make the one of a copy of the other (`{name}.copy()`)",
            )
    params = facts.info.params
    for one in sorted(memory):
        origin = one.partition(":")[2]
        if one.startswith("param:") and isinstance(params.get(origin), k.Tensor):
            check_calls(ctx, Write(node, whole(origin), facts.info, False, False))
        elif one.startswith("attr:") and _holds_tensor(ctx, facts, origin):
            what = f"writing `{name}` also changes the tensor `{origin}`"
            raise Failure(node, "MUT001", what, f"write to a copy (`{name} = {name}.copy()`)")


def _reads_tensor(ctx: Context, facts: Aliases, name: str) -> bool:
    """Whether a function reads a tensor under a name, or what may be one where it makes arrays of tensors."""
    tree, body = ctx.facts.tree, facts.info.node.body
    kinds = [ctx.kind(n) for n in tree.within(body, cst.Name) if n.value == name]
    if any(isinstance(kind, k.Tensor) for kind in kinds):
        return True
    crossing = any(ctx.facts.callee(n) in _CROSSING for n in tree.within(body, cst.Call))
    return crossing and any(isinstance(kind, k.Unknown) for kind in kinds)


def _holds_tensor(ctx: Context, facts: Aliases, attribute: str) -> bool:
    read = ctx.facts.tree.within(facts.info.node.body, cst.Attribute, cst.Call)
    return any(isinstance(ctx.kind(n), k.Tensor) and syntax.code(n) == attribute for n in read)


def _is_written_later(ctx: Context, call: cst.Call) -> bool:
    """Whether a function writes to the name that it gives to a call's result, or to a view of it."""
    node: cst.CSTNode = call
    around = ctx.facts.tree.around(call)
    while around:
        parent = around.pop()
        if isinstance(parent, cst.Assign):
            targets = parent.targets
            return (
                node is parent.value
                and len(targets) == 1
                and isinstance(targets[0].target, cst.Name)
                and targets[0].target.value in _written_names(ctx)
            )
        if isinstance(parent, cst.Attribute):
            if parent.value is not node or parent.attr.value not in NUMPY_VIEWS | _ATTRIBUTES:
                return False
        elif isinstance(parent, cst.Call):
            called = ctx.facts.callee(parent) or ""
            view = called.startswith("numpy.") and called.rpartition(".")[2] in NUMPY_VIEWS
            if parent.func is not node and not view:
                return False
        elif not isinstance(parent, (cst.Arg, cst.Subscript)):
            return False
        node = parent
    return False


def _written_names(ctx: Context) -> set[str]:
    """The names of the numpy arrays that the function around writes to."""
    below = ctx.facts.tree.below(innermost(ctx).node.body)
    found = (root_name(one) for node in below for one in _written(ctx, node))
    return {one.value for one in found if one is not None}
