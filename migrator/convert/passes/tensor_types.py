"""torch's old classes of tensors, ``torch.LongTensor`` and ``torch.cuda.FloatTensor``: each stands for a dtype."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.passes.annotations import dtype_of
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.annotations import TENSOR_DTYPES


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
