"""Slices of a Sequential: their layers keep the numbers that they have in torch, which are keys of the state_dict."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

_KEEPING = (cst.AnnAssign, cst.Element, cst.DictElement, cst.Return, cst.IfExp)


def keeps_names(ctx: Context, node: cst.Subscript) -> bool:
    """Whether the layers of a slice have other names in torch than their numbers in it: ``[1:]``, ``[::2]``, layers with names."""
    part = node.slice[0].slice
    if not isinstance(part, cst.Slice):
        return False
    if part.step is not None or (part.lower is not None and syntax.code(part.lower) != "0"):
        return True
    kind = ctx.kind(node.value)
    named = isinstance(kind, k.Module) and any(not name.isdigit() for name, _ in kind.args)
    return named or "OrderedDict" in ctx.source.text


def is_kept(ctx: Context, node: cst.Subscript, parent: cst.CSTNode | None) -> bool:
    """Whether a slice goes into a name, a container or another module, where the numbers of its layers are keys."""
    if isinstance(parent, cst.Assign):
        return not any(isinstance(one.target, (cst.Tuple, cst.List)) for one in parent.targets)
    if not isinstance(parent, cst.Arg):
        return isinstance(parent, _KEEPING)
    call = ctx.facts.tree.around(node)[-2]
    name = ctx.facts.callee(call) if isinstance(call, cst.Call) else None
    return not parent.star and not (name or "").startswith("builtins.")
