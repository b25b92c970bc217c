"""torch's old classes of tensors, ``torch.LongTensor`` and ``torch.cuda.FloatTensor``: each stands for a dtype."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.annotations import dtype_of
from migrator.convert.passes.library import asked_by_text
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.annotations import TENSOR_DTYPES
from migrator.infer.static import truth
from rules import definitions


@converts(cst.Call, called=("Tensor.type",))
def cast(rw: Rewriter, node: cst.Call) -> Any:
    """``x.type(torch.LongTensor)``, ``x.type("torch.cuda.FloatTensor")`` → ``x.astype(…)``."""
    if rw.ctx.facts.callee(node) != "Tensor.type" or len(node.args) != 1:
        return None
    given = node.args[0].value
    kind = rw.ctx.facts.kind(given)
    name = str(kind.value) if isinstance(kind, k.Const) else rw.ctx.facts.qualified_name(given)
    if name not in TENSOR_DTYPES or not isinstance(node.func, cst.Attribute):
        return None
    tensor = syntax.fitted(node.func, "value", rw.visit(node.func.value))
    dtype = dtype_of(rw, node, TENSOR_DTYPES[name])
    return cst.Call(cst.Attribute(tensor, cst.Name("astype")), [cst.Arg(dtype)])


@converts(cst.Assign, kinds=(k.Class,))
def kept_class(rw: Rewriter, node: cst.Assign) -> Any:
    """``Tensor = torch.cuda.FloatTensor if CUDA else torch.FloatTensor`` goes, where it makes tensors or casts them."""
    ctx, target = rw.ctx, node.targets[0].target
    if len(node.targets) > 1 or not _is_class(ctx, node.value) or not ctx.facts.tree.has(node):
        return None
    tree = ctx.facts.tree
    reads: list[cst.Name | cst.Attribute]
    if isinstance(target, cst.Name):
        names = tree.of_type(cst.Name)
        if ctx.frame is not None:
            names = tree.within(ctx.frame.info.node, cst.Name)
        elif any(isinstance(one, cst.ClassDef) for one in tree.around(node)):
            return None
        elif ctx.facts.linked is not None:
            if ctx.facts.linked.shared(f"{ctx.source.module}.{target.value}"):
                return None
        reads = [one for one in names if one.value == target.value]
    elif isinstance(target, cst.Attribute) and ctx.is_self(target.value):
        reads = [
            one
            for one in tree.of_type(cst.Attribute)
            if one.attr.value == target.attr.value
            and not isinstance(ctx.facts.kind(one.value), k.Namespace)
        ]
        if asked_by_text(ctx, target.attr.value):
            return None
    else:
        return None
    return [] if all(_makes_or_casts(ctx, one) for one in reads) else None


def _is_class(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression is one of torch's old classes, whose constructors have a conversion."""
    name = k.on_host(ctx.facts.qualified_name(node) or "")
    if name not in TENSOR_DTYPES or not definitions.ops(name):
        return False
    if isinstance(node, cst.IfExp):
        known = truth(ctx.facts, node.test)
        return (known is False or _is_class(ctx, node.body)) and (
            known is True or _is_class(ctx, node.orelse)
        )
    return isinstance(node, (cst.Name, cst.Attribute))


def _makes_or_casts(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a name of such a class is called, is what ``x.type()`` is told, or is bound to one."""
    match ctx.facts.tree.around(node):
        case [*_, cst.Assign() as assign, cst.AssignTarget()]:
            return len(assign.targets) == 1 and _is_class(ctx, assign.value)
        case [*_, cst.Call() as call] if call.func is node:
            return bool(definitions.ops(ctx.facts.callee(call) or ""))
        case [*_, cst.Call() as call, cst.Arg() as arg] if arg.keyword is not node:
            return ctx.facts.callee(call) == "Tensor.type" and len(call.args) == 1
        case [*_, cst.Attribute() as of] if of.attr is node:
            return isinstance(ctx.facts.kind(of.value), k.Namespace)
        case [*_, cst.ImportAlias() | cst.Global()]:
            return False
    return False


@converts(cst.Call, named=("isinstance",))
def instance_test(rw: Rewriter, node: cst.Call) -> Any:
    """``isinstance(x, torch.LongTensor)`` asks for the dtype, and where the tensor lies.

    Raises:
      Failure: it asks for CUDA's tensors, or for several classes.
    """
    if not (
        type(node.func) is cst.Name and node.func.value == "isinstance" and len(node.args) == 2
    ):
        return None
    tested, asked = (arg.value for arg in node.args)
    classes = [e.value for e in asked.elements] if isinstance(asked, cst.Tuple) else [asked]
    names = [rw.ctx.facts.qualified_name(one) or "" for one in classes]
    if not any(name in TENSOR_DTYPES for name in names):
        return None
    if len(names) > 1 or names[0].startswith("torch.cuda.") or not isinstance(tested, cst.Name):
        what = "the class of a tensor is asked for, which says its dtype and its device"
        raise Failure(node, "API011", what, "compare x.dtype with a dtype")
    left = cst.Attribute(cst.Name(tested.value), cst.Name("dtype"))
    dtype = dtype_of(rw, node, TENSOR_DTYPES[names[0]])
    same = cst.Comparison(left, [cst.ComparisonTarget(cst.Equal(), dtype)])
    if isinstance(rw.ctx.kind(tested), k.Tensor):
        return syntax.parenthesized(same)
    rw.ctx.helpers.use("jax")
    array = syntax.with_args(node, [node.args[0], cst.Arg(syntax.parse("jax.Array"))])
    return syntax.parenthesized(cst.BooleanOperation(array, cst.And(), same))


_QUESTIONS = {"is_floating_point": "floating", "is_complex": "complexfloating"}


@converts(cst.Attribute, of=(k.DType,))
def asked(rw: Rewriter, node: cst.Attribute) -> Any:
    """``x.dtype.is_floating_point`` → ``jnp.issubdtype(x.dtype, jnp.floating)``."""
    name = node.attr.value
    if name not in _QUESTIONS and name not in _OTHER_QUESTIONS:
        return None
    if not isinstance(rw.ctx.kind(node.value), k.DType):
        return None
    if name in _OTHER_QUESTIONS:
        what = f"torch.dtype.{name} has no conversion"
        raise Failure(node, "API001", what, "ask by jnp.issubdtype(dtype, …)")
    rw.ctx.helpers.use("jnp")
    made = syntax.parse(f"jnp.issubdtype(dtype, jnp.{_QUESTIONS[name]})")
    assert isinstance(made, cst.Call)
    return syntax.with_args(made, [cst.Arg(rw.visit(node.value)), made.args[1]])


_OTHER_QUESTIONS = ("is_signed", "to_real", "to_complex")
