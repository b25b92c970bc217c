"""``norm_cls = nn.LayerNorm`` in the body of a class: Python binds a function there to the object, and no class."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import read


@converts(cst.Assign, targets=(cst.Name,))
def unbound(rw: Rewriter, node: cst.Assign) -> Any:
    """``norm_cls = staticmethod(layer_norm)`` where the output has a function for what torch does not bind."""
    ctx = rw.ctx
    if ctx.frame is not None or not ctx.classes or node in ctx.redeclared:
        return None
    if not all(isinstance(one.target, cst.Name) for one in node.targets):
        return None
    if not _is_unbound(rw, node.value) or _keeps_names(ctx):
        return None
    ctx.redeclared.add(node)
    made = rw.visit(node)
    if not isinstance(made, cst.Assign):
        return made
    if not isinstance(made.value, _MAYBE) or _is_class(ctx, made.value):
        return made
    wrapped = syntax.with_args(cst.Call(cst.Name("staticmethod")), [cst.Arg(made.value)])
    return syntax.changed(made, value=wrapped)


_MAYBE = (cst.Name, cst.Attribute, cst.IfExp, cst.Lambda)
"""What may be a function in the output."""


def _is_class(ctx: Context, made: cst.BaseExpression) -> bool:
    """Whether an expression of the output names a class of Flax, or a helper that is one."""
    if isinstance(made, cst.Attribute):
        return isinstance(made.value, cst.Name) and made.value.value == "nnx"
    for (
        path,
        name,
    ), here in ctx.helpers.names.items():  # (file, definition) → what it is called here
        if isinstance(made, cst.Name) and made.value == here:
            return isinstance(read(path).definitions.get(name), ast.ClassDef)
    return False


def _is_unbound(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a value of torch's is reached through an object as it is, and may be a function in the output."""
    if isinstance(value, cst.IfExp):
        return _is_unbound(rw, value.body) or _is_unbound(rw, value.orelse)
    kind = rw.ctx.facts.kind(value)
    if isinstance(kind, k.Class):
        return kind.name.startswith("torch.nn.")
    if isinstance(kind, k.Module):
        return kind.cls.startswith("torch.nn.")
    return isinstance(kind, k.Function) and kind.name.startswith("torch.")


def _keeps_names(ctx: Context) -> bool:
    """Whether the class makes something else of what its body binds: a field, a member of an Enum."""
    node = ctx.classes[-1].node
    bases = [syntax.code(base.value) for base in node.bases]
    return bool(node.decorators) or any("Enum" in base or "Tuple" in base for base in bases)
