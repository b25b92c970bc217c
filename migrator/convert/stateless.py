"""Methods that read nothing of their module and are handed on as values: ``{"gelu": self.gelu}[name]``.

Bound to the module they would tie whoever keeps them to it (:mod:`migrator.convert.passes.kept_methods`). They are
functions that stand in a class, and are written as what they are: static methods, which are bound to nothing.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo


def is_stateless(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a method becomes a static one."""
    found = ctx.stateless.get(info)
    if found is None:
        found = ctx.stateless[info] = _is_stateless(ctx, info)
    return found


def _is_stateless(ctx: Context, info: FunctionInfo) -> bool:
    owner, tree = info.owner, ctx.facts.tree
    if owner is None or owner.torch_base is None or owner.settled or info.decorators:
        return False
    if info.node not in owner.node.body.body or not tree.has(info.node):
        return False
    name, params = info.short, info.node.params
    if name == "forward" or name.startswith("__") or params.posonly_params or not params.params:
        return False
    first = params.params[0]
    if first.default is not None or ctx.plan.how(info) is not None or info.generator:
        return False
    asked = {first.name.value, "super", "locals", "__class__", "eval", "exec"}
    if asked & syntax.names(info.node.body).keys():
        return False
    family = [c for c in ctx.facts.classes.values() if owner in c.lineage() or c in owner.lineage()]
    if any(name in c.methods for c in family if c is not owner):
        return False
    return _is_handed_on(ctx, info)


def _is_handed_on(ctx: Context, info: FunctionInfo) -> bool:
    """Whether it is always taken from an instance, and somewhere not to be called there."""
    assert info.owner is not None
    handed = False
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != info.short:
            continue
        around = ctx.facts.tree.around(node)
        if not isinstance(node.value, cst.Name) or node.value.value != "self":
            return False
        if info.owner.node in around:
            handed |= not (isinstance(around[-1], cst.Call) and around[-1].func is node)
    return handed


def as_static(node: cst.FunctionDef) -> cst.FunctionDef:
    """The method without its first parameter, decorated with ``staticmethod``."""
    params = syntax.changed(node.params, params=node.params.params[1:])
    return syntax.changed(node, decorators=[cst.Decorator(cst.Name("staticmethod"))], params=params)
