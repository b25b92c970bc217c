"""What a forward pass is given to count by: arguments that it only hands to methods which take them for sizes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.infer.evidence import gather
from migrator.infer.facts import Facts, FunctionInfo
from migrator.tree import Tree

_OTHER = frozenset(
    "tensor torch shaped indexed iterated container called unpacked attribute classed layer asked".split()
)
"""Uses that speak against a number."""
_DEEP = 4


def counts_for(facts: Facts, info: FunctionInfo, name: str, deep: int = _DEEP) -> bool:
    """Whether a parameter is handed on as a size, and to nothing that takes it for something else.

    ``self.bias(n)`` of ``def bias(self, n): return torch.arange(n)``.
    """
    counted = False
    for callee, param in _handed(facts, info, name) if deep else ():
        if callee is None or not facts.tree.has(callee.node):
            return False
        if callee.uses is None:
            callee.uses = gather(facts.tree, callee.node)
        uses = callee.uses.get(param, set())
        if uses & _OTHER or _has_hint(callee, param):
            return False
        if "int" in uses or counts_for(facts, callee, param, deep - 1):
            counted = True
        elif uses or any(True for _ in _names(facts.tree, callee, param)):
            return False  # it works with it in another way
    return counted


def _has_hint(info: FunctionInfo, param: str) -> bool:
    every = info.node.params
    listed = (*every.posonly_params, *every.params, *every.kwonly_params)
    return any(one.name.value == param and one.annotation is not None for one in listed)


def _names(tree: Tree, info: FunctionInfo, name: str) -> Iterator[cst.Name]:
    """Where a function's body names a parameter."""
    for one in tree.within(info.node.body, cst.Name):
        above = tree.parent(one)
        if one.value != name or (isinstance(above, cst.Attribute) and above.attr is one):
            continue
        if not (isinstance(above, cst.Arg) and above.keyword is one):
            yield one


def _handed(
    facts: Facts, info: FunctionInfo, name: str
) -> Iterator[tuple[FunctionInfo | None, str]]:
    """The functions of the file that get a parameter, with the name that they have for it; None for another use."""
    tree = facts.tree
    for one in _names(tree, info, name):
        arg = tree.parent(one)
        call = tree.parent(arg)
        if not isinstance(arg, cst.Arg) or arg.value is not one or not isinstance(call, cst.Call):
            yield None, name
            continue
        callee = _called(facts, info, call)
        params = [] if callee is None else _own_params(callee)
        if arg.keyword is not None:
            found = arg.keyword.value if arg.keyword.value in params else None
        else:
            place = next(i for i, given in enumerate(call.args) if given is arg)
            plain = not any(given.star or given.keyword for given in call.args[: place + 1])
            found = params[place] if plain and place < len(params) else None
        yield (callee if found else None), found or name


def _called(facts: Facts, info: FunctionInfo, call: cst.Call) -> FunctionInfo | None:
    """The method of the same class, or the function of the file, that a call runs."""
    func = call.func
    if isinstance(func, cst.Name):
        named = [
            one
            for one in facts.functions.values()
            if one.short == func.value and one.owner is None and one.outer is None
        ]
        return named[0] if len(named) == 1 else None
    if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name):
        if func.value.value == "self" and info.owner is not None:
            return info.owner.method(func.attr.value)
    return None


def _own_params(info: FunctionInfo) -> list[str]:
    """The parameters that a call fills by place."""
    params = info.node.params
    named = [one.name.value for one in (*params.posonly_params, *params.params)]
    return named[1:] if info.has_receiver else named


def counts_items(tree: Tree, function: cst.FunctionDef, uses: dict[str, set[str]]) -> bool:
    """``def forward(self, *sizes)`` of which one after another says how far ``torch.arange`` goes."""
    star = function.params.star_arg
    if not isinstance(star, cst.Param):
        return False
    counted = False
    for one in tree.within(function.body, cst.For, cst.CompFor):
        if isinstance(one.iter, cst.Name) and one.iter.value == star.name.value:
            targets = syntax.names(one.target)
            if not all("int" in uses.get(name, ()) for name in targets):
                return False
            counted = True
    return counted
