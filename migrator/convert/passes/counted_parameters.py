"""How many numbers a model has: ``sum(p.numel() for p in model.parameters())``, for which nobody needs torch's order."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_SIZES = ("numel", "nelement")


@converts(cst.Call, called=("builtins.sum",))
def counted_parameters(rw: Rewriter, node: cst.Call) -> Any:
    """→ ``sum(p.size for p in jax.tree.leaves(nnx.state(model, nnx.Param)))``, of all with those that are not trained."""
    ctx = rw.ctx
    given = node.args[0] if len(node.args) == 1 else None
    if ctx.facts.callee(node) != "builtins.sum":
        return None
    if given is None or given.star or given.keyword is not None:
        return None
    if not isinstance(given.value, cst.GeneratorExp | cst.ListComp):
        return None
    loop, size = given.value.for_in, _method(given.value.elt)
    if loop.inner_for_in is not None or loop.asynchronous is not None:
        return None
    parameters = _method(loop.iter)
    if not isinstance(loop.target, cst.Name) or size is None or parameters is None:
        return None
    name = loop.target.value
    module, method = parameters
    if size[1] not in _SIZES or not _is_name(size[0], name) or method != "parameters":
        return None
    if not isinstance(ctx.kind(module), k.Module):
        return None
    if loop.ifs and not (len(loop.ifs) == 1 and _asks(loop.ifs[0].test, name)):
        return None
    kept = "nnx.Param"
    if not loop.ifs:
        kept = f"(nnx.Param, {ctx.helpers.need(module_file('rules.compat.named'), 'Frozen')})"
    ctx.helpers.use("jax")
    ctx.helpers.use("nnx")
    made = syntax.parse(f"sum(_p.size for _p in jax.tree.leaves(nnx.state(_m, {kept})))")
    return syntax.substitute(made, {"_m": rw.visit(module), "_p": cst.Name(name)})


def _method(node: cst.CSTNode) -> tuple[cst.BaseExpression, str] | None:
    """What a method without arguments is called of, and its name."""
    if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute):
        return None
    return node.func.value, node.func.attr.value


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _asks(test: cst.BaseExpression, name: str) -> bool:
    """``p.requires_grad``"""
    named = isinstance(test, cst.Attribute) and test.attr.value == "requires_grad"
    return named and _is_name(test.value, name)  # type: ignore[attr-defined]
