"""``self.scale = scale; self.scale = nn.Parameter(…)``: an attribute that is a layer or parameter once it was something else.

Flax decides by the first value of an attribute whether it holds data; a later one that does has to say so.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.kept import either_or
from migrator.convert.passes.held import assigned, is_function
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.Assign, targets=(cst.Attribute,))
def declared(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.scale = nnx.data(nnx.Param(…)) if learned else 1.0``."""
    ctx, target = rw.ctx, node.targets[0].target
    owner = ctx.owner
    if (
        len(node.targets) != 1
        or not isinstance(target, cst.Attribute)
        or ("declared_later", node) in ctx.asking
    ):
        return None
    if owner is None or owner.torch_base is None or not ctx.is_self(target.value):
        return None
    if not ctx.facts.tree.has(node):
        return None
    if not _is_part(rw, node.value) or not _was_plain(ctx, node, target.attr.value):
        return None
    made = rw.visit_for(("declared_later", node))
    if not isinstance(made, cst.Assign) or not isinstance(made.targets[0].target, cst.Attribute):
        return made
    ctx.helpers.use("nnx")
    return syntax.changed(made, value=_as_data(rw, node.value, made.value))


def _is_part(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a value is a parameter or a layer with data, in one case at least."""
    if isinstance(value, cst.IfExp):
        return _is_part(rw, value.body) or _is_part(rw, value.orelse)
    kind = rw.ctx.facts.kind(value)
    if isinstance(kind, k.Tensor):
        return bool(kind.role)
    return isinstance(kind, k.Module)


def _was_plain(ctx: Context, node: cst.Assign, name: str) -> bool:
    """Whether an assignment before this one may have given the attribute what is no data."""
    owner, tree = ctx.owner, ctx.facts.tree
    assert owner is not None
    own = tree.place(node)
    for value in assigned(ctx, owner, name):
        if value is node.value or not tree.has(value) or tree.place(value) > own:
            continue
        if _is_plain(ctx, value) and not either_or(ctx, node.value, value):
            return True
    return False


def _is_plain(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value may be no data: a number, a text, an argument; None has been declared."""
    if isinstance(value, cst.IfExp):
        return _is_plain(ctx, value.body) or _is_plain(ctx, value.orelse)
    if isinstance(value, cst.Name) and value.value == "None":
        return False
    kind = ctx.facts.kind(value)
    if isinstance(kind, (k.Const, k.Scalar, k.Class)):
        return True
    return isinstance(kind, (k.Unknown, k.Optional)) and isinstance(value, cst.Name)


def _as_data(
    rw: Rewriter, value: cst.BaseExpression, made: cst.BaseExpression
) -> cst.BaseExpression:
    if isinstance(value, cst.IfExp) and isinstance(made, cst.IfExp):
        body, orelse = (
            _as_data(rw, one, other) if _is_part(rw, one) else other
            for one, other in ((value.body, made.body), (value.orelse, made.orelse))
        )
        return syntax.changed(made, body=body, orelse=orelse)
    if is_function(rw, value) and not _is_wrapped(made):
        return made
    if isinstance(made, cst.Call) and syntax.code(made.func) in ("nnx.data", "nnx.static"):
        return made
    call = cst.Call(syntax.parse("nnx.data"))
    return syntax.with_args(call, [cst.Arg(syntax.unparenthesized(made))])


def _is_wrapped(made: cst.BaseExpression) -> bool:
    """``Stateless(…)``: a function as a layer."""
    return isinstance(made, cst.Call) and syntax.code(made.func).startswith("Stateless")


@converts(cst.FunctionDef, when=lambda ctx: "property" in ctx.words)
def hiding(rw: Rewriter, node: cst.FunctionDef) -> None:
    """A property without a setter of the name under which a base keeps a parameter or a layer.

    Raises:
      Failure: torch keeps that in a table of its own, where the property does not see it; Flax has one for all.
    """
    ctx = rw.ctx
    info = ctx.facts.functions.get(node)
    if info is None or info.owner is None or info.owner.torch_base is None:
        return
    if not any(_names(one.decorator, "property") for one in node.decorators):
        return
    name = node.name.value
    setters = (f for f in ctx.facts.functions.values() if f.owner is info.owner)
    if any(_names(one.decorator, "setter", name) for f in setters for one in f.node.decorators):
        return
    for base in info.owner.lineage()[1:]:
        kept = base.attributes.get(name)
        kept = kept.inner if isinstance(kept, k.Optional) else kept
        if isinstance(kept, k.Module) or (isinstance(kept, k.Tensor) and kept.role):
            what = f"the property `{name}` hides what {base.short} keeps under that name"
            raise Failure(node, "API007", what, "give one of the two another name")


def _names(node: cst.BaseExpression, word: str, of: str = "") -> bool:
    """``property``, ``scale.setter``."""
    if isinstance(node, cst.Attribute):
        return (
            node.attr.value == word and isinstance(node.value, cst.Name) and node.value.value == of
        )
    return isinstance(node, cst.Name) and node.value == word and not of
