"""What a class has in the place of what its base, in another file, asks of ``self`` and writes to."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.convert.overriding import by_place
from migrator.convert.passing import passes
from migrator.convert.returned import ANY, returned_arguments, returned_state
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k

_ADVICE = "give it a copy of its own (`.clone()`), or write the base's lines anew"


def _has_bases(ctx: Context) -> bool:
    return any(
        one.settled is not None and (one.settled.hooks or one.settled.shown)
        for one in ctx.facts.classes.values()
    )


@converts(cst.FunctionDef, when=_has_bases)
def method(rw: Rewriter, node: cst.FunctionDef) -> None:
    """Raise a Failure for a method that gives its argument where the base's makes a tensor, which the base writes to."""
    ctx = rw.ctx
    info = ctx.facts.functions.get(node)
    if info is None or info.owner is None or info.owner.methods.get(info.short) is not info:
        return
    for base in _bases(info.owner):
        theirs = base.methods.get(info.short)
        if base.settled is None or theirs is None or info.short not in base.settled.hooks:
            continue
        if theirs.settled is None or ANY in theirs.settled.returned:
            continue
        given = {by_place(theirs, info, one) for one in returned_arguments(ctx, info)}
        state = returned_state(ctx, info) - theirs.settled.returned_state
        if given - theirs.settled.returned or state:
            what = f"{base.short} writes to what {info.short}() gives, and here it may be what it is handed, or of the module's"
            raise Failure(node, "MUT001", what, _ADVICE)


@converts(cst.Assign, when=_has_bases, targets=(cst.Attribute,))
def layer(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``self.act = nn.Identity()`` where the base writes to what ``self.act`` gives."""
    ctx = rw.ctx
    target = node.targets[0].target
    kind = ctx.facts.kind(node.value)
    if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value) or ctx.owner is None:
        return
    if not isinstance(kind, k.Module):
        return
    name = target.attr.value
    for base in _bases(ctx.owner):
        before = base.settled.given.get(name) if base.settled is not None else None
        if base.settled is None or not isinstance(before, k.Module) or before == kind:
            continue
        handed = name in base.settled.hooks and passes(ctx, kind) and not passes(ctx, before)
        overwritten = name in base.settled.shown and k.in_place(kind) is not False
        if handed or (overwritten and k.in_place(before) is False):
            what = f"{base.short} has another layer `{name}`, and writes to what it gives or reads again what it is handed"
            raise Failure(node, "MUT001", what, _ADVICE)


def _bases(info: ClassInfo) -> list[ClassInfo]:
    return [one for one in info.lineage()[1:] if one.settled is not None]
