"""Classes of the file that stand among others, so that no kind says which of them a value is."""

from __future__ import annotations

import libcst as cst

from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context
from migrator.infer import kinds as k


def is_among_others(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a class is one of several that are told apart by no kind: ``{"own": Own, "gelu": nn.GELU}``."""
    handed: cst.Arg | None = None
    for around in reversed(ctx.source.index.around(node)):
        if isinstance(around, cst.Call) and handed is not None and not _makes_dict(ctx, around):
            return any(map(_is_any, _parameters(ctx, around, handed)))
        if isinstance(around, (cst.IfExp, cst.BooleanOperation)):
            kind = ctx.facts.kind(around)
        elif isinstance(around, (cst.List, cst.Tuple)):
            kind = k.element(ctx.facts.kind(around))
        elif isinstance(around, cst.Dict) or _makes_dict(ctx, around):
            mapping = ctx.facts.kind(around)
            kind = mapping.value if isinstance(mapping, k.Mapping) else k.UNKNOWN
        elif isinstance(around, (cst.Element, cst.DictElement, cst.Arg)):
            handed = around if isinstance(around, cst.Arg) else handed
            continue
        else:
            return False
        if _is_any(kind):
            return True
    return False


def _is_any(kind: k.Kind) -> bool:
    any_class = k.is_any_class(kind) and not kind.among  # type: ignore[attr-defined]
    any_module = k.is_any_module(kind) and not kind.among  # type: ignore[attr-defined]
    return isinstance(kind, k.Unknown) or any_class or any_module


def _parameters(ctx: Context, call: cst.Call, arg: cst.Arg) -> list[k.Kind]:
    """The kinds of the parameters that an argument of a call becomes, from all calls: ``Block(act=Own)``, ``Block()``."""
    found: list[k.Kind] = []
    for info in ctx.facts.functions.values():
        if call in info.call_sites:
            found += [
                info.params[name]
                for name, item in bound_arguments(call, info)
                if item is arg and name in info.params
            ]
    return found


def _makes_dict(ctx: Context, node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and ctx.facts.callee(node) == "builtins.dict"
