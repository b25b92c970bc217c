"""The memory of each of several results: which argument ``a``, and which ``b``, of ``a, b = f(x, y)`` may be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.overriding import overriding
from migrator.convert.parts import is_made, whole
from migrator.convert.starred import spread_arguments
from migrator.infer import FunctionInfo

Memory = Callable[[cst.BaseExpression], frozenset[str]]


class Returned:
    """What the ``return`` statements of a function give."""

    def __init__(self) -> None:
        self.all: frozenset[str] = frozenset()
        self.each: tuple[frozenset[str], ...] = ()
        """Of each element, where all of them return tuples of one length; empty otherwise."""
        self._told = False

    def add(self, value: cst.BaseExpression, memory: Memory) -> None:
        """Take a ``return`` into account."""
        self.all |= memory(value)
        each: tuple[frozenset[str], ...] = ()
        if isinstance(value, cst.Tuple) and not any(
            isinstance(element, cst.StarredElement) for element in value.elements
        ):
            each = tuple(memory(element.value) for element in value.elements)
        if self._told and len(each) == len(self.each):
            each = tuple(a | b for a, b in zip(self.each, each, strict=True))
        elif self._told:
            each = ()
        self.each, self._told = each, True


def each_result(
    ctx: Context, info: FunctionInfo, call: cst.Call, memory: Memory, count: Callable[[], int]
) -> Sequence[frozenset[str]]:
    """The memory of each result of a call of a function, or of one that heirs have in its place.

    Empty where they give not as many, or where one of them is of another file or is being looked at."""
    from migrator.convert.memory import aliases

    several = [info, *overriding(ctx, info)]
    if len(several) > 1 and _raises(info.node):
        del several[0]  # it is left to heirs
    found = []
    for one in several:
        if one.settled is not None or ctx.aliases.get(one, one) is None:
            return ()
        found.append(results(ctx, one, aliases(ctx, one).given, call, memory, count()))
    if len({len(one) for one in found}) != 1:
        return ()
    return [frozenset[str]().union(*each) for each in zip(*found, strict=True)]


def _raises(function: cst.FunctionDef) -> bool:
    """Whether a function does no more than raise."""
    body = [one for one in function.body.body if not syntax.is_docstring(one)]
    last = body[-1] if len(body) == 1 else None
    small = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    return isinstance(small, cst.Raise)


def results(
    ctx: Context,
    info: FunctionInfo,
    returned: Returned,
    call: cst.Call,
    memory: Memory,
    number: int,
) -> Sequence[frozenset[str]]:
    """The memory of each result of a call; empty where that is not known one by one.

    ``number`` tells what one call makes from what another does.
    """
    if info.outer is not None or info.generator or any(item.star for item in call.args):
        return ()
    given = {name: memory(item.value) for name, item in spread_arguments(ctx, call, info)}
    params = info.node.params
    stars = {s.name.value for s in (params.star_arg, params.star_kwarg) if isinstance(s, cst.Param)}
    found = []
    for one in returned.each:
        element: frozenset[str] = frozenset()
        for label in one:
            name = whole(label).removeprefix("param:")
            if not label.startswith("param:"):
                if not is_made(frozenset({label})):
                    return ()
                made = label.startswith(("new:", "box:"))
                element |= {f"{label}:{number}"} if made else {label}
            elif name in stars or (info.has_receiver and name not in info.params):
                return ()
            else:
                element |= given.get(name, frozenset())
        found.append(element)
    return found
