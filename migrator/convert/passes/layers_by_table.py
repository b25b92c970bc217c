"""``self.act = nn.PReLU()`` and then ``self.act = ACTS[name]()``: what a table makes may be a plain function.

Flax decides by the first value of an attribute whether it is a part of the module, and a function is none.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.kept import either_or
from migrator.convert.nested_layers import becomes_function
from migrator.convert.passes.held import assigned, is_called, is_function
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,), values=(cst.Call,))
def made_by_table(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.act = ACTS[name]()`` → ``self.act = as_layer(ACTS[name](rngs=rngs))`` where a module may stand already."""
    ctx, target = rw.ctx, node.targets[0].target
    key, owner = ("layers_by_table", node), ctx.owner
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or key in ctx.asking:
        return None
    if owner is None or owner.torch_base is None or not ctx.is_self(target.value):
        return None
    if not _may_be_function(rw, node.value) or not is_called(ctx, target.attr.value):
        return None
    others = [v for one in owner.lineage() for v in assigned(ctx, one, target.attr.value)]
    if not any(_is_module(rw, v) and not either_or(ctx, v, node.value) for v in others):
        return None
    made = rw.visit_for(key)
    if not isinstance(made, cst.Assign):
        return made
    helper = ctx.helpers.need(module_file("rules.compat.children"), "as_layer")
    call = syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(made.value)])
    return syntax.changed(made, value=call)


def _may_be_function(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a call of something that is no class by name may give a function in the output: ``act_layer()``."""
    ctx: Context = rw.ctx
    if not isinstance(value, cst.Call) or is_function(rw, value):
        return False
    kind, called = ctx.facts.kind(value), ctx.facts.kind(value.func)
    if isinstance(value.func, (cst.Name, cst.Attribute)):
        sized = any(item.keyword is None for item in value.args)
        if isinstance(called, k.Class) or sized:
            return False  # what is told a size is a layer with parameters
    if isinstance(kind, k.Module):
        return any(map(becomes_function, kind.cls.split("|")))
    return isinstance(kind, k.Unknown)


def _is_module(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a value is a module: a layer without state becomes one, too, where others stand for it."""
    if not isinstance(value, cst.Call):
        return False
    layer = isinstance(rw.ctx.facts.kind(value), k.Module) and not _may_be_function(rw, value)
    return layer or is_function(rw, value)
