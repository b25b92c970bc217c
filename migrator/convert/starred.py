"""Which parameters the arguments of a call may become, those that a star spreads out among them: ``write(*xs, **more)``."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def spread_arguments(
    ctx: Context, node: cst.Call, info: FunctionInfo
) -> Iterator[tuple[str, cst.Arg]]:
    """Each parameter with an argument that it may get, or a part of it.

    What ``*xs`` holds, and what stands behind it, may become any parameter that is left, and what ``**more`` holds any that
    is not named. What no parameter is called for goes to ``*args`` and ``**kwargs`` of the function.
    """
    params = info.node.params
    places = [p.name.value for p in (*params.posonly_params, *params.params)]
    if not _names_its_object(ctx, node, info):
        places = places[info.receivers :]
    named = {*places, *(p.name.value for p in params.kwonly_params)}
    rest = params.star_arg.name.value if isinstance(params.star_arg, cst.Param) else None
    others = params.star_kwarg.name.value if params.star_kwarg is not None else None
    spread = False
    for item in node.args:
        if item.star == "**":
            given = {a.keyword.value for a in node.args if a.keyword is not None}
            yield from ((name, item) for name in sorted(named - given))
            if others is not None:
                yield others, item
        elif item.keyword is not None:
            name = item.keyword.value if item.keyword.value in named else others
            if name is not None:
                yield name, item
        elif item.star or spread:
            spread = True
            yield from ((name, item) for name in places)
            if rest is not None:
                yield rest, item
        elif places:
            yield places.pop(0), item
        elif rest is not None:
            yield rest, item


def _names_its_object(ctx: Context, node: cst.Call, info: FunctionInfo) -> bool:
    """``Base.forward(self, x)``: a method that is called of its class gets its object as the first argument."""
    if not info.has_receiver or "classmethod" in info.decorators or info.short == "__new__":
        return False
    func = node.func
    return isinstance(func, cst.Attribute) and isinstance(ctx.facts.kind(func.value), k.Class)


def may_hold_tensors(kind: k.Kind) -> bool:
    """Whether what is of a kind may be a tensor, or have some: no list of numbers or texts."""
    if isinstance(kind, k.Optional):
        return may_hold_tensors(kind.inner)
    if isinstance(kind, k.Sequence):
        return may_hold_tensors(kind.item)
    if isinstance(kind, k.Mapping):
        return may_hold_tensors(kind.value)
    if isinstance(kind, k.Tuple):
        return any(map(may_hold_tensors, kind.items))
    return isinstance(kind, (k.Tensor, k.Unknown, k.NumberOrTensor))
