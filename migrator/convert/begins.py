"""Sequentials of the file with a constructor of their own, and what they begin with."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.first import is_rest
from migrator.infer.starred import layers_of

Inside = Callable[[Context, k.Module], bool]


def begins_in_place(ctx: Context, info: ClassInfo | None, inside: Inside) -> bool:
    """Whether a Sequential of the file may begin with a layer that overwrites its input.

    ``inside`` says it of the kind of one that is made in one place.
    """
    for one in info.lineage() if info is not None and info.method("forward") is None else ():
        if one.settled is not None and one.settled.begins_in_place:
            return True
    if info is None or info.torch_base != "torch.nn.Sequential" or info.method("forward"):
        return False
    init = info.method("__init__")
    made: list[k.Module] = []
    for node in ctx.source.index.within(init.node.body, cst.Call) if init is not None else ():
        name = getattr(node.func, "attr", node.func)
        if isinstance(name, cst.Name) and name.value in _HANDING and node.args:
            if init is not None and node.args[0].star == "*":
                if is_rest(init, node.args[0].value):  # super().__init__(*layers)
                    if any(_hands_on_in_place(ctx, init, call, inside) for call in init.call_sites):
                        return True
                    if init.begins.keys() >= init.call_sites.keys():
                        return False
                elif _mentions_rest(init, node.args[0].value):  # *reversed(layers)
                    return k.in_place(layers_of(init)) is not False
            first = ctx.kind(node.args[-1 if name.value == "add_module" else 0].value)
            if isinstance(first, k.Module):
                return k.in_place(first) is not False
        kind = ctx.kind(node)
        if isinstance(kind, k.Module):
            made.append(kind)
    return bool(made) and k.in_place(made[0]) is not False


_HANDING = ("__init__", "add_module", "append")


def _hands_on_in_place(
    ctx: Context, init: FunctionInfo, call: cst.CSTNode | None, inside: Inside
) -> bool:
    """Whether what a call hands to ``*layers`` may begin with a layer that overwrites its input."""
    if init.begins.get(call, False) is not False:
        return True
    if not isinstance(call, cst.Call) or any(one.star for one in call.args):
        return False
    given = [one.value for one in call.args if one.keyword is None]
    layers = given[len(init.node.params.params) - 1 :]
    children = tuple((str(i), ctx.facts.kind(one)) for i, one in enumerate(layers))
    return bool(children) and inside(ctx, k.Module("torch.nn.Sequential", args=children))


def _mentions_rest(init: FunctionInfo, node: cst.CSTNode) -> bool:
    star = init.node.params.star_arg
    return isinstance(star, cst.Param) and star.name.value in syntax.names(node)
