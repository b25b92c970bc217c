"""``self.v = 0.0`` of what becomes a tensor later, and is asked which of them it is: a number to Flax, too, until then.

Data of a number would be traced under ``jit``, where ``isinstance(self.v, float)`` never holds.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.asked_of_type import is_plain
from migrator.infer.symbols import tensor_attribute
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def assigned(rw: Rewriter, node: cst.Assign) -> cst.Assign | None:
    """``self.v = 0.0`` → ``self.v = nnx.static(0.0)``, ``self.v = x`` → ``self.v = nnx.data(x)``"""
    target = node.targets[0].target
    if len(node.targets) != 1 or not _is_asked(rw.ctx, target):
        return None
    return syntax.changed(node, value=_declared(rw, node.value, rw.visit(node.value)))


@converts(cst.AugAssign)
def added_to(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``self.v += x`` → ``self.v = nnx.data(self.v + x)``"""
    if not _is_asked(rw.ctx, node.target):
        return None
    check_mutation(rw.ctx, node, node.target)
    operator = syntax.code(node.operator).strip().removesuffix("=")
    sides = {"__x__": rw.visit(node.target), "__y__": rw.visit(node.value)}
    value = syntax.substitute(syntax.parse(f"__x__ {operator} __y__"), sides)
    return cst.Assign([cst.AssignTarget(node.target)], _declared(rw, node.value, value))


@converts(cst.Call, called=("builtins.hasattr",))
def asked(rw: Rewriter, node: cst.Call) -> cst.Call | None:
    """``hasattr(self.v, "shape")`` → ``isinstance(self.v, jax.Array)``"""
    if rw.ctx.facts.callee(node) != "builtins.hasattr" or len(node.args) != 2:
        return None
    held, name = node.args[0].value, node.args[1].value
    word = name.evaluated_value if isinstance(name, cst.SimpleString) else None
    if not isinstance(word, str) or not tensor_attribute(word) or hasattr(0.0, word):
        return None
    if not _is_asked(rw.ctx, held):
        return None
    rw.ctx.helpers.use("jax")
    args = [cst.Arg(rw.visit(held)), cst.Arg(syntax.parse("jax.Array"))]
    return syntax.with_args(cst.Call(cst.Name("isinstance")), args)


def _is_asked(ctx: Context, target: cst.BaseExpression) -> bool:
    if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value):
        return False
    owner = ctx.owner
    if owner is None or owner.torch_base is None:
        return False
    name = target.attr.value
    kind = owner.attribute(name)
    if kind is None or isinstance(kind, k.Module) or k.is_registered(kind):
        return False
    if isinstance(kind, (k.Sequence, k.Tuple, k.Mapping)):
        return False  # of tensors, later: how many there are is known under jit, too
    return any(name in one.asked for one in owner.lineage())


def _declared(
    rw: Rewriter, value: cst.BaseExpression, made: cst.BaseExpression
) -> cst.BaseExpression:
    kind = rw.ctx.kind(value)
    plain = is_plain(value) or kind == k.NONE
    if not plain and not isinstance(kind, k.Tensor):
        func: cst.BaseExpression = cst.Name(
            rw.ctx.helpers.need(module_file("rules.compat.factories"), "static_or_data")
        )
    else:
        rw.ctx.helpers.use("nnx")
        func = syntax.parse("nnx.static" if plain else "nnx.data")
    return syntax.with_args(cst.Call(func), [cst.Arg(syntax.unparenthesized(made))])
