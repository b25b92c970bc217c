"""Classes of the file that stand among others, so that no kind says which of them a value is."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import kinds as k


def is_among_others(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a class is one of several that are told apart by no kind: ``{"own": Own, "gelu": nn.GELU}``."""
    for around in reversed(ctx.source.index.around(node)):
        if isinstance(around, (cst.IfExp, cst.BooleanOperation)):
            kind = ctx.facts.kind(around)
        elif isinstance(around, (cst.List, cst.Tuple)):
            kind = k.element(ctx.facts.kind(around))
        elif isinstance(around, cst.Dict) or _makes_dict(ctx, around):
            mapping = ctx.facts.kind(around)
            kind = mapping.value if isinstance(mapping, k.Mapping) else k.UNKNOWN
        elif isinstance(around, (cst.Element, cst.DictElement, cst.Arg)):
            continue
        else:
            return False
        if isinstance(kind, k.Unknown) or (k.is_any_class(kind) and not kind.among):  # type: ignore[attr-defined]
            return True
    return False


def _makes_dict(ctx: Context, node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and ctx.facts.callee(node) == "builtins.dict"
