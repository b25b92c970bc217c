"""Functions that compute in float64 what they give back to numpy: ``torch.linspace(a, b, n, dtype=torch.float64).numpy()``.

They run on the host, before anything is compiled, where JAX computes in 64 bits as well if it is told to.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo

_MAKING = frozenset(
    f"torch.{name}"
    for name in "linspace logspace arange ones zeros full empty eye tensor as_tensor".split()
)
_DOUBLE = ("torch.float64", "torch.double")
_LEAVING = ("numpy", "tolist", "item")


def computes_in_double(ctx: Context, info: FunctionInfo) -> bool:
    """Whether all tensors that a function makes are of float64, and none leaves it but as an array of numpy or a number."""
    if info.owner is not None or info.outer is not None or info.settled is not None:
        return False
    tree, body = ctx.facts.tree, info.node.body
    returns = tree.within(body, cst.Return)
    if not returns or not all(_leaves(one.value) for one in returns):
        return False
    if tree.within(body, cst.FunctionDef, cst.Lambda, cst.Yield):
        return False
    calls = [(ctx.facts.callee(call) or "", call) for call in tree.within(body, cst.Call)]
    if any(name in ctx.facts.names or name.startswith("torch.rand") for name, _ in calls):
        return False
    made = [call for name, call in calls if name in _MAKING]
    return bool(made) and all(_is_double(ctx, call) for call in made)


def _leaves(value: cst.BaseExpression | None) -> bool:
    """``betas.numpy()``."""
    func = value.func if isinstance(value, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in _LEAVING


def _is_double(ctx: Context, call: cst.Call) -> bool:
    given = (a.value for a in call.args if a.keyword is not None and a.keyword.value == "dtype")
    return any(ctx.facts.qualified_name(one) in _DOUBLE for one in given)


def in_64_bits(ctx: Context, body: cst.BaseSuite) -> cst.BaseSuite:
    """The statements of a function within ``with jax.enable_x64(True):``, its docstring before it."""
    ctx.helpers.use("jax")
    statements: list[Any] = list(body.body)
    at = 1 if statements and syntax.is_docstring(statements[0]) else 0
    block = syntax.statement("with jax.enable_x64(True):\n    pass\n")
    block = syntax.changed(block, body=cst.IndentedBlock(statements[at:]))
    return syntax.changed(body, body=[*statements[:at], block])
