"""``copy.deepcopy(net)``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes import targets
from migrator.convert.passes.module_walks import in_forward
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Call, called=("copy.deepcopy",))
def copied(rw: Rewriter, node: cst.Call) -> Any:
    """A copy that a function runs itself, or one in a program that walks over parts of modules.

    What torch computes with a copy leaves the original no gradient, and Flax's copy has not got the order of the parts.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != "copy.deepcopy" or len(node.args) != 1:
        return None
    kind, text = ctx.kind(node.args[0].value), ctx.source.text
    if isinstance(kind, k.Tensor) and _is_computed_with(ctx):
        ctx.helpers.use("lax")
        value = cst.Arg(rw.visit(node.args[0].value))
        return syntax.with_args(cst.Call(syntax.parse("lax.stop_gradient")), [value])
    local = targets.holds_parameter(ctx, node.args[0].value)
    if isinstance(kind, k.Tensor) and (local or kind.role == "param"):
        ctx.helpers.use("nnx")
        read = rw.visit(node.args[0].value)
        value = cst.Arg(targets.dereferenced(read) if local else read)
        return syntax.with_args(cst.Call(syntax.parse("nnx.Param")), [value])
    if not isinstance(kind, (k.Module, k.Unknown, k.Sequence)):
        return None
    known = isinstance(kind, k.Module) and _is_computed_with(ctx)
    if known or (not ctx.in_init and _is_run(ctx, node)):
        helper = "detached_copy"
    elif ctx.traverses or any(word in text for word in ("parameters(", "children(")):
        helper = "deepcopy"
    else:
        return None
    name = ctx.helpers.need(module_file("rules.compat.named"), helper)
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node.args[0].value))])


def _is_computed_with(ctx: Context) -> bool:
    """Whether a function makes the copy whenever a forward pass runs, and not where a model is built."""
    if ctx.in_init or ctx.frame is None or ctx.plan.builds_time(ctx.frame.info):
        return False
    return in_forward(ctx.frame.info)


def _is_run(ctx: Context, node: cst.Call) -> bool:
    """``copy.deepcopy(m)(x)``, or a function gives the copy a name and calls that or an item; a method where it is a module."""
    if ctx.frame is None or not ctx.facts.tree.has(node):
        return False
    above, parent = [None, *ctx.facts.tree.around(node)][-2:]
    if isinstance(parent, cst.Call):
        return parent.func is node
    module = k.is_any_module(ctx.kind(node.args[0].value))
    if isinstance(parent, cst.Attribute):
        return isinstance(above, cst.Call) and above.func is parent and _runs(parent, module)
    if not isinstance(parent, (cst.Assign, cst.AnnAssign, cst.NamedExpr)):
        return False
    targets = (
        [t.target for t in parent.targets] if isinstance(parent, cst.Assign) else [parent.target]
    )
    names = {one.value for one in targets if isinstance(one, cst.Name)}
    return any(
        isinstance(root := _root(call.func), cst.Name)
        and root.value in names
        and _runs(call.func, module)
        for call in ctx.facts.tree.within(ctx.frame.info.node, cst.Call)
    )


def _runs(func: cst.BaseExpression, module: bool) -> bool:
    """Whether what is called runs a copy: of something unknown, such as settings, a method does not."""
    return module or not isinstance(func, cst.Attribute) or func.attr.value in _OF_MODULES


_OF_MODULES = frozenset("forward __call__ parameters named_parameters".split())
"""Methods that modules alone have."""


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node
