"""Whether a decorator hands the keywords of a call on to what it decorates, where a generator is among them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax


def hands_keywords(node: cst.FunctionDef) -> bool:
    """Whether every function inside that calls a parameter of one around it does so with its own ``**kwargs``.

    ``def deco(init): def wrapped(self, *args, **kwargs): init(self, *args, **kwargs)``; what it is called with otherwise,
    ``init(self, **from_config(*args, **kwargs))``, need not hold everything.
    """
    return all(_hands_on(call, inner) for call, inner in _calls(node, (), frozenset()))


def _calls(
    node: cst.FunctionDef, around: tuple[cst.FunctionDef, ...], outer: frozenset[str]
) -> Iterator[tuple[cst.Call, cst.FunctionDef]]:
    """The calls of parameters of the functions around, each with the function that it stands in."""
    own = frozenset(syntax.parameters(node))
    waiting: list[cst.CSTNode] = [node.body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, cst.FunctionDef):
            yield from _calls(one, (*around, node), outer | own)
            continue
        if isinstance(one, cst.Call) and isinstance(one.func, cst.Name):
            if one.func.value in outer - own:
                yield one, node
        waiting.extend(syntax.children(one))


def _hands_on(call: cst.Call, inner: cst.FunctionDef) -> bool:
    star = inner.params.star_kwarg
    return star is not None and any(
        arg.star == "**" and isinstance(arg.value, cst.Name) and arg.value.value == star.name.value
        for arg in call.args
    )
