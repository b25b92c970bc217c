"""``self.blocks = [getattr(self, f"block{i}") for i in range(n)]``: lists of what the module has under other names."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def listed(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.blocks = Unregistered([…])``, which Flax follows and the state_dict does not name."""
    ctx, target = rw.ctx, node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or not ctx.in_init:
        return None
    if ctx.owner is None or ctx.owner.torch_base is None or not ctx.is_self(target.value):
        return None
    value = node.value
    if isinstance(value, (cst.List, cst.Tuple)) and value.elements:
        parts = [element.value for element in value.elements]
        if not all(_is_own(ctx, part) for part in parts):
            return None
        made: Any = cst.List([cst.Element(_reference(rw, part)) for part in parts])
    elif isinstance(value, cst.Dict) and value.elements:
        return _table(rw, node, value)
    elif isinstance(value, cst.ListComp) and _is_computed(ctx, value.elt):
        made = rw.visit(value)
    elif isinstance(value, cst.List) and _gathers(ctx, target.attr.value):
        made = value
    else:
        return None
    name = ctx.helpers.need(module_file("rules.compat.containers"), "Unregistered")
    call = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(syntax.unparenthesized(made))])
    return syntax.changed(node, value=call)


def _table(rw: Rewriter, node: cst.Assign, value: cst.Dict) -> Any:
    """``self.heads = nnx.data({"a": self.a, "b": self.b})``."""
    entries = [e for e in value.elements if isinstance(e, cst.DictElement)]
    if len(entries) != len(value.elements) or not all(_is_own(rw.ctx, e.value) for e in entries):
        return None
    made = [syntax.changed(e, key=rw.visit(e.key), value=_reference(rw, e.value)) for e in entries]
    rw.ctx.helpers.use("nnx")
    table = syntax.changed(value, elements=made)
    call = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(table)])
    return syntax.changed(node, value=call)


def _is_own(ctx: Context, node: cst.BaseExpression) -> bool:
    """``self.conv1``, a layer, parameter or buffer of the module, or one by a name that is computed."""
    if not isinstance(node, cst.Attribute) or not ctx.is_self(node.value):
        return _is_computed(ctx, node)
    kind = ctx.facts.kind(node)
    if isinstance(kind, k.Module):
        return ctx.owner is not None and not isinstance(
            ctx.owner.attribute(node.attr.value), k.Optional
        )
    return isinstance(kind, k.Tensor) and kind.role in ("param", "buffer")


def _is_computed(ctx: Context, node: cst.BaseExpression) -> bool:
    """``getattr(self, f"block{i}")``."""
    if not isinstance(node, cst.Call) or ctx.facts.callee(node) != "builtins.getattr":
        return False
    return len(node.args) == 2 and ctx.is_self(node.args[0].value)


def _reference(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """The layer or Variable itself."""
    if targets.is_variable(rw.ctx, node):
        return targets.variable_reference(rw, node)[0]
    return rw.visit(node)


def _gathers(ctx: Context, name: str) -> bool:
    """Whether the constructor appends to a list what the module has by computed names, and nothing else."""
    frame = ctx.frame
    if frame is None or frame.info.node.name.value != "__init__":
        return False
    given = []
    for call in ctx.facts.tree.within(frame.info.node.body, cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Attribute):
            if func.value.attr.value == name and ctx.is_self(func.value.value):
                if func.attr.value != "append" or len(call.args) != 1:
                    return False
                given.append(call.args[0].value)
    return bool(given) and all(_is_computed(ctx, one) for one in given)
