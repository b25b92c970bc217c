"""Which parameters become attributes of a module by an assignment, which torch registers there."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k

OF_SETATTR = 3
"""How many arguments it takes."""


def becomes_attribute(ctx: Context, node: cst.Name | cst.Subscript) -> bool:
    """Whether a parameter that a name stands for, or an entry of a list, is what an attribute of a module is given."""
    tree = ctx.facts.tree
    if not is_parameter(ctx, node):
        return False
    above = tree.parent(node) if tree.has(node) else None
    if isinstance(above, cst.Assign):
        held = [t.target.value for t in above.targets if isinstance(t.target, cst.Attribute)]
        return len(held) == len(above.targets) and all(is_module(ctx, one) for one in held)
    call = tree.parent(above) if isinstance(above, cst.Arg) else None
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "builtins.setattr":
        return False
    last = call.args[-1] is above and len(call.args) == OF_SETATTR
    return last and is_module(ctx, call.args[0].value)


def is_parameter(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression is a parameter, which may have another name in its module."""
    kind = ctx.kind(node)
    return isinstance(kind, k.Tensor) and kind.role == "param"


def is_module(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an object is a module, which registers what its attributes are given."""
    own = ctx.is_self(node) and ctx.owner is not None and ctx.owner.torch_base is not None
    return own or isinstance(ctx.kind(node), k.Module)
