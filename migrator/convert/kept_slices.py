"""Slices of a Sequential: their layers keep the numbers that they have in torch, which are keys of the state_dict."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.infer import kinds as k

_KEEPING = (
    cst.AnnAssign,
    cst.Element,
    cst.DictElement,
    cst.Return,
    cst.IfExp,
    cst.ListComp,
    cst.DictComp,
    cst.GeneratorExp,
)


def keeps_names(ctx: Context, node: cst.Subscript) -> bool:
    """Whether the layers of a slice have other names in torch than their numbers in it: ``[1:]``, ``[::2]``, layers with names."""
    part = node.slice[0].slice
    if not isinstance(part, cst.Slice):
        return False
    _check_class(ctx, node)
    if _renumbers(part) or any(
        _is_further(ctx, one) for one in ctx.source.index.of_type(cst.Slice)
    ):
        return True
    kind = ctx.kind(node.value)
    named = isinstance(kind, k.Module) and any(not name.isdigit() for name, _ in kind.args)
    return named or "OrderedDict" in ctx.source.text


def _check_class(ctx: Context, node: cst.Subscript) -> None:
    """Raise a Failure for a slice of a Sequential with a forward pass of its own, which the slice has in torch, too."""
    kind = ctx.kind(node.value)
    info = ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
    if info is not None and info.method("forward") is not None:
        what = f"a slice of {info.name} is one of those in torch, with their forward pass"
        raise Failure(node, "API007", what, "make it of the layers: nn.Sequential(*net[1:])")


def _renumbers(part: cst.Slice) -> bool:
    return part.step is not None or (part.lower is not None and syntax.code(part.lower) != "0")


def _is_further(ctx: Context, part: cst.Slice) -> bool:
    """Whether a slice of a Sequential elsewhere has numbers of its own, which one of that keeps: ``net[1:][:2]``."""
    node = ctx.facts.tree.around(part)[-2]
    kind = ctx.kind(node.value) if isinstance(node, cst.Subscript) else None
    return _renumbers(part) and isinstance(kind, k.Module) and kind.cls == "torch.nn.Sequential"


def is_kept(ctx: Context, node: cst.Subscript, parent: cst.CSTNode | None) -> bool:
    """Whether a slice goes into a name, a container or another module, where the numbers of its layers are keys."""
    if isinstance(parent, cst.Assign):
        return not any(isinstance(one.target, (cst.Tuple, cst.List)) for one in parent.targets)
    if isinstance(parent, cst.Subscript) and isinstance(parent.slice[0].slice, cst.Slice):
        return parent.value is node and is_kept(ctx, parent, ctx.facts.tree.parent(parent))
    if not isinstance(parent, cst.Arg):
        return isinstance(parent, _KEEPING)
    call = ctx.facts.tree.around(node)[-2]
    name = ctx.facts.callee(call) if isinstance(call, cst.Call) else None
    return not parent.star and not (name or "").startswith("builtins.")
