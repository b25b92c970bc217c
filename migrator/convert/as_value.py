"""A function of torch that is handed around: the function of JAX that does the same, where its calls allow that.

What calls it is not known where it is handed on, and JAX's functions take other arguments after the first:
``jnp.mean(x, dim=1)`` raises. So it stands for torch's where the calls of the file that may reach it give one argument.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.inline import CallArg, NoConversion, expand
from migrator.infer import kinds as k
from rules.definitions import Rule


def plain_function(ctx: Context, name: str, rules: Sequence[Rule]) -> cst.BaseExpression | None:
    """``jax.nn.relu`` for ``F.relu`` as a value: a definition that calls one function on its argument."""
    if any(param.mode == "*" for rule in rules for param in rule.params):
        return None  # torch.zeros(2, 3) is jnp.zeros((2, 3)): it gathers its arguments
    probe = cst.Name("x")
    try:
        expansion = expand(name, list(rules), [CallArg(None, probe, probe, k.TENSOR)])
    except NoConversion:
        return None
    template = expansion.template
    if template is None or template.is_tuple:
        return None
    node = template.nodes[0]
    if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].keyword:
        return None
    only, func = node.args[0].value, node.func
    if not isinstance(only, cst.Name) or only.value != "__a0__":
        return None
    if template.uses[0] != syntax.names(node) or not isinstance(func, (cst.Name, cst.Attribute)):
        return None
    if "__a0__" in syntax.names(func) or not _called_with_one(ctx, rules):
        return None
    carried = {
        item: cst.Name(ctx.helpers.need(expansion.rule.file, item)) for item in template.globals
    }
    return syntax.substitute(func, carried)


def _called_with_one(ctx: Context, rules: Sequence[Rule]) -> bool:
    """Whether no call that may reach a function gives more than what it computes with.

    A reduction has an axis nearly always: it must be seen to be called without one."""
    if all(len(rule.params) == 1 for rule in rules):
        return True
    calls = [node for node in ctx.source.index.of_type(cst.Call) if _is_open(ctx, node)]
    if any(_fits(ctx, node, rule) for node in calls for rule in rules):
        return False
    reduces = any("dim" in rule.by_name for rule in rules)
    return not reduces or any(len(node.args) == 1 for node in calls)


def _is_open(ctx: Context, node: cst.Call) -> bool:
    """Whether it is not known what a call calls."""
    func = node.func
    if isinstance(func, cst.Attribute) and not ctx.is_self(func.value):
        return False  # a method of something: a function is kept in a name or by the module
    # a choice of two functions has no name
    return ctx.facts.callee(node) is None and type(ctx.facts.kind(func)) in (k.Unknown, k.Function)


def _fits(ctx: Context, node: cst.Call, rule: Rule) -> bool:
    """Whether the arguments of a call may be more than the first of a definition: no tensors, and by its names."""
    if any(arg.star for arg in node.args):
        return True
    if len(node.args) < 2:
        return False
    further = [arg.value for arg in node.args[1:] if arg.keyword is None]
    names = {arg.keyword.value for arg in node.args if arg.keyword is not None}
    if len(further) >= max(len(rule.positional), 1) or not names <= set(rule.by_name):
        return False
    return not any(isinstance(ctx.kind(value), (k.Tensor, k.Module)) for value in further)
