"""What model files import of timm beside its models: tuples, constants, stochastic depth, the registry."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.symbols import TIMM_CONSTANTS, of_timm
from rules.definitions import module_file

_PREFIX = "timm_layers."


def from_timm(rw: Rewriter, node: cst.ImportFrom, module: str) -> Any:
    """``from timm.data import IMAGENET_DEFAULT_MEAN`` → its value; what is written with helpers goes."""
    if isinstance(node.names, cst.ImportStar):
        return node  # of what needs no torch
    made = list[cst.BaseSmallStatement]()
    for alias in node.names:
        name = of_timm(f"{module}.{alias.evaluated_name}")
        if name in TIMM_CONSTANTS:
            target = cst.AssignTarget(cst.Name(alias.evaluated_alias or alias.evaluated_name))
            made.append(cst.Assign([target], syntax.parse(repr(TIMM_CONSTANTS[name]))))
    return made


def _may_be(ctx: Context) -> bool:
    if "timm" in ctx.words:
        return True
    names = (getattr(kind, "name", "") or "" for kind in ctx.facts.module_env.values())
    return any(name.startswith(_PREFIX) for name in names)


@converts(cst.Name, cst.Attribute, when=_may_be)
def helper(rw: Rewriter, node: cst.Name | cst.Attribute) -> Any:
    """``to_2tuple``, ``make_divisible``: Python functions, which are copied."""
    kind = rw.ctx.facts.kind(node)
    if not isinstance(kind, k.Function) or not kind.name.startswith(_PREFIX):
        return None
    name = kind.name.removeprefix(_PREFIX)
    if name in ("drop_path", "register_model"):
        what = f"timm's {name} as a value has no conversion"
        raise Failure(node, "API001", what, "call it, or decorate a function with it")
    return cst.Name(rw.ctx.helpers.need(module_file("rules.compat.timm_layers"), name))
