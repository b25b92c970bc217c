"""Layers that a call hands to ``*layers``: what they are, and whether the first of them works in place."""

from __future__ import annotations

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.first import first_in_place
from migrator.infer.signatures import Args


def hand_on(
    facts: Facts,
    caller: FunctionInfo | None,
    info: FunctionInfo,
    call: cst.CSTNode | None,
    args: Args,
    taken: int,
) -> None:
    """Note the layers that a call hands to the starred parameter of a function, behind so many others.

    Other values are taken for unknown there, as ever; a layer that works in place is to be seen where it is run."""
    star = info.node.params.star_arg
    if not isinstance(star, cst.Param):
        return
    placed = [
        (i, keyword, kind) for i, (keyword, kind) in enumerate(args) if keyword in (None, "*")
    ]
    unpacked = next((n for n, one in enumerate(placed) if one[1] == "*"), len(placed))
    rest = placed[min(taken, unpacked) :]
    items = [kind if keyword is None else k.element(kind) for _, keyword, kind in rest]
    layers = [one for one in items if isinstance(one, k.Module)]
    if not layers:
        return
    name = f"*{star.name.value}"
    made = k.joined([*layers, info.sites.get(name, k.UNKNOWN)])
    begins = None
    if unpacked >= taken and isinstance(call, cst.Call) and len(call.args) == len(args):
        at, keyword, kind = rest[0]
        begins = first_in_place(facts, caller, call, call.args[at].value, (keyword, kind))
    if made != info.sites.get(name) or info.begins.get(call, "") != begins:
        info.sites[name] = made
        info.begins[call] = begins
        info.dirty = True


def layers_of(info: FunctionInfo) -> k.Module | None:
    """What the starred parameter of a function holds, where that is layers."""
    star = info.node.params.star_arg
    found = info.sites.get(f"*{star.name.value}") if isinstance(star, cst.Param) else None
    return found if isinstance(found, k.Module) else None
