"""``Net.load_from_package(package)``, ``Net.serialize(model, optimizer)``: a torch checkpoint, taken apart and put together.

They stand in the class of a model and belong to no instance of it: who calls them has the state of a torch model, or
wants it.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.checkpoints import always_built, callee
from migrator.convert.context import Context
from migrator.infer.facts import FunctionInfo

_READS, _ASKS, _FILE = "Module.load_state_dict", "Module.state_dict", "torch.load"


def loads_state(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function has to be handed the state of a model, or the file it is in, and gives it to one."""
    return _is_beside(ctx, info, frozenset()) and _reads(ctx, info, frozenset())


def saves_state(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function has to be handed a model, whose state it gives back in a dict."""
    needed = _needed(info)
    if not needed or not _is_beside(ctx, info, frozenset()):
        return False
    packed = ctx.facts.tree.within(info.node.body, cst.Dict)
    return any(
        isinstance(one.func, cst.Attribute) and syntax.names(one.func.value).keys() <= needed
        for pack in packed
        for one in ctx.facts.tree.within(pack, cst.Call)
        if callee(ctx.facts, one) == _ASKS
    )


def _needed(info: FunctionInfo) -> set[str]:
    """The arguments that nobody may leave out."""
    params = syntax.parameters(info.node)
    return {name for name, param in params.items() if param.default is None and not param.star}


def _is_beside(ctx: Context, info: FunctionInfo, seen: frozenset[FunctionInfo]) -> bool:
    """Whether a function of a class of modules is called by none but those who hand on a state, if by any."""
    from migrator.convert.passes.freezing import forward_reaches

    if not {"classmethod", "staticmethod"} & set(info.decorators):
        return False
    if info.owner is None or not info.owner.torch_base:
        return False
    if forward_reaches(ctx, info) or always_built(info):
        return False
    return all(
        one is not None
        and one not in seen
        and _is_beside(ctx, one, seen | {info})
        and _reads(ctx, one, seen)
        for one in info.call_sites.values()
    )


def _reads(ctx: Context, info: FunctionInfo, seen: frozenset[FunctionInfo]) -> bool:
    """Whether a function gives a model what it is handed, or what lies in the file it is told of."""
    needed = _needed(info)
    calls = ctx.facts.tree.within(info.node.body, cst.Call)
    handed = [one for one in calls if one.args and set(syntax.names(one.args[0].value)) & needed]
    if any(callee(ctx.facts, one) == _READS for one in handed):
        return True
    if not any(callee(ctx.facts, one) == _FILE for one in handed):
        return False
    return any(
        info in other.call_sites.values() and _reads(ctx, other, seen | {info})
        for other in ctx.facts.functions.values()
        if other is not info and other not in seen
    )
