"""Methods that classes which derive from another have instead of its own: what calls one of these may run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrator import syntax
from migrator.infer import FunctionInfo

if TYPE_CHECKING:
    from migrator.convert.context import Context

_OF_THEIR_OWN = frozenset(
    {"__init__", "forward", "__call__", "extra_repr", "backward", "setup_context"}
)
"""Methods that are hardly called on ``self``: an heir that has its own calls that of its base."""


def overriding(ctx: Context, info: FunctionInfo) -> list[FunctionInfo]:
    """The methods that heirs of a method's class have in its place, those of other files aside.

    ``self.post(x)`` in a class is ``Heir.post`` where the object is an heir."""
    if ctx.overriding is None:
        ctx.overriding = {}
        for one in ctx.facts.classes.values():
            for base in one.lineage()[1:] if one.settled is None else ():
                for name in base.methods.keys() - _OF_THEIR_OWN:
                    theirs, known = one.method(name), ctx.overriding.get(base.methods[name], [])
                    if theirs is not None and theirs not in (base.methods[name], *known):
                        ctx.overriding[base.methods[name]] = [*known, theirs]
    return ctx.overriding.get(info, [])


def by_place(info: FunctionInfo, other: FunctionInfo, name: str) -> str:
    """What a method calls the parameter that another one calls ``name``, by their places."""
    ours, theirs = list(syntax.parameters(info.node)), list(syntax.parameters(other.node))
    place = theirs.index(name) if name in theirs else len(ours)
    return ours[place] if place < len(ours) else name
