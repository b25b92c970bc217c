"""Numbers of numpy beside tensors: ``x * np.sqrt(d)``, ``x + torch.finfo(torch.float32).eps``.

They are Python numbers to torch, which leaves a tensor of half precision in it; to JAX they are float32 of their own. What
may be such a number or an array is asked in files that name a narrow type alone.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes.held import assigned
from migrator.convert.passes.listed_parameters import given
from migrator.convert.passes.zero_dims import names_half
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_OF_NUMBERS = frozenset(
    f"numpy.{name}"
    for name in "sqrt exp expm1 log log1p log2 log10 power sin cos tan tanh abs floor ceil prod float32 float64".split()
)
"""Functions of numpy that give a number of its own for a number."""
_LIMITS = frozenset("eps max min tiny smallest_normal resolution".split())
_BESIDE = frozenset(
    "add sub subtract rsub mul multiply div divide true_divide pow clamp clamp_min clamp_max clip masked_fill where "
    "add_ sub_ mul_ div_ clamp_ masked_fill_ remainder fmod".split()
)
"""What takes a number beside a tensor."""


@converts(
    cst.Call,
    cst.Attribute,
    cst.Name,
    cst.BinaryOperation,
    when=lambda ctx: (
        (names_half(ctx) and ctx.facts.linked is not None)
        or not ctx.words.isdisjoint({"numpy", "finfo"})
    ),
)
def beside_a_tensor(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """``x * np.sqrt(d)`` → ``x * float(np.sqrt(d))``."""
    ctx, key = rw.ctx, ("numpy_numbers", node)
    if key in ctx.asking or not ctx.facts.tree.has(node) or not _is_beside(ctx, node):
        return None
    if ctx.in_init and not names_half(ctx):
        return None  # where all floats are of one type
    function = "float"
    if not _is_number(ctx, node, sure=True):
        if not names_half(ctx):
            return None
        if not _is_number(ctx, node) and (
            ctx.facts.kind(node) != k.NUMPY or not isinstance(node, (cst.Attribute, cst.Name))
        ):
            return None
        function = ctx.helpers.need(module_file("rules.compat.numbers"), "as_number")
    made = rw.visit_for(key)
    return syntax.with_args(cst.Call(cst.Name(function)), [cst.Arg(syntax.unparenthesized(made))])


def _is_beside(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression is an operand beside a tensor of floats, or an argument that is taken as one."""
    above, parent = [None, *ctx.facts.tree.around(node)][-2:]
    if isinstance(parent, cst.BinaryOperation):
        other = parent.right if parent.left is node else parent.left
        return _is_float(ctx.kind(other)) and not _is_limit_of(node, other)
    if not isinstance(parent, cst.Arg) or not isinstance(above, cst.Call):
        return False
    name = ctx.facts.callee(above) or ""
    if name in ctx.facts.names or isinstance(ctx.kind(above.func), k.Module):
        return not ctx.in_init  # of the file's own, which may compute with it
    if not name.startswith(("torch.", "Tensor.")) or name.rpartition(".")[2] not in _BESIDE:
        return False
    whole = [one.value for one in above.args]
    if isinstance(above.func, cst.Attribute) and name.startswith("Tensor."):
        whole.append(above.func.value)
    return not any(_is_limit_of(node, one) for one in whole)


def _is_float(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and kind.dtype in ("float", None)


def _is_limit_of(node: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """``torch.finfo(x.dtype).min`` beside x, which has its dtype."""
    if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Call):
        return False
    asked = [one.value for one in node.value.args]
    own = [one for one in asked if isinstance(one, cst.Attribute) and one.attr.value == "dtype"]
    return any(one.value.deep_equals(other) for one in own)


def _is_number(ctx: Context, node: cst.BaseExpression, depth: int = 3, sure: bool = False) -> bool:
    """Whether a value is a number of numpy's, and no Python number or array; perhaps an array, if it need not be sure."""
    if isinstance(node, cst.Call):
        numbers = (
            k.scalar_type(ctx.kind(one.value)) or _may_be_one(ctx, one, sure) for one in node.args
        )
        return ctx.facts.callee(node) in _OF_NUMBERS and all(numbers)
    if isinstance(node, cst.BinaryOperation):
        sides = (node.left, node.right)
        found = [_is_number(ctx, one, depth, sure) for one in sides]
        plain = [k.scalar_type(ctx.kind(one)) is not None for one in sides]
        return any(found) and all(a or b for a, b in zip(found, plain, strict=True))
    if isinstance(node, cst.UnaryOperation):
        return _is_number(ctx, node.expression, depth, sure)
    if isinstance(node, cst.Attribute) and node.attr.value in _LIMITS:
        limits = node.value
        if isinstance(limits, cst.Name):
            limits = given(ctx, limits) or limits
        if isinstance(limits, cst.Call) and ctx.facts.callee(limits) == "torch.finfo":
            return True
    values = _values(ctx, node) if depth else []
    return bool(values) and all(_is_number(ctx, one, depth - 1, sure) for one in values)


def _may_be_one(ctx: Context, arg: cst.Arg, sure: bool) -> bool:
    """A name of which nothing is known, as ``d_k`` of ``np.sqrt(d_k)``; numpy's own numbers."""
    if arg.star or arg.keyword is not None:
        return False
    plain = isinstance(arg.value, (cst.Name, cst.Attribute))
    open_ = plain and isinstance(ctx.kind(arg.value), k.Unknown) and not sure
    return open_ or _is_number(ctx, arg.value, 1, sure)


def _values(ctx: Context, node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a name or an attribute of the module is given."""
    if isinstance(node, cst.Name) and (ctx.frame is None or node.value not in ctx.frame.locals):
        lines = ctx.source.index.of_type(cst.Assign)
        top = [line for line in lines if len(ctx.source.index.around(line)) == 2]
        return [line.value for line in top for to in line.targets if node.deep_equals(to.target)]
    if isinstance(node, cst.Name):
        value = given(ctx, node)
        return [value] if value is not None else []
    if isinstance(node, cst.Attribute) and ctx.is_self(node.value) and ctx.owner is not None:
        return assigned(ctx, ctx.owner, node.attr.value)
    return []
