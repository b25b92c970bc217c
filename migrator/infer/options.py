"""Branches behind an option, a parameter with a constant default: ``if inplace:``, ``if mask is not None:``.

A call that leaves the option at its default does not run them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.facts import FunctionInfo
from migrator.tree import Tree

_OPEN = object()
"""The value of what a default does not decide."""
_NAMED: Mapping[str, Any] = {"True": True, "False": False, "None": None}
_COMPARING: Mapping[type, Callable[[Any, Any], Any]] = {
    cst.Is: operator.is_,
    cst.IsNot: operator.is_not,
    cst.Equal: operator.eq,
    cst.NotEqual: operator.ne,
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
    cst.In: lambda a, b: a in b,
    cst.NotIn: lambda a, b: a not in b,
}
_BINDING = (
    cst.AssignTarget,
    cst.AnnAssign,
    cst.AugAssign,
    cst.For,
    cst.NamedExpr,
    cst.AsName,
    cst.Del,
)
_SCOPES = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.CompFor)


def options_on(tree: Tree, info: FunctionInfo, node: cst.CSTNode) -> list[str]:
    """The parameters of a function of which each, left at its default, keeps a node from being run."""
    if not tree.holds(info.node.body, node):
        return []
    branches = list(_branches(tree, info, node))
    found = []
    for name, default in _defaults(info).items():
        for test, taken, branch in branches:
            known = _value(test, name, default)
            if known is not _OPEN and bool(known) is not taken:
                if not _is_set(tree, info, name, branch):
                    found.append(name)
                    break
    return found


def kept_away(
    tree: Tree,
    info: FunctionInfo,
    node: cst.CSTNode,
    calls: Iterable[cst.CSTNode],
    kind: Callable[[cst.CSTNode], k.Kind],
) -> bool:
    """Whether some option, as every call gives it, keeps a node from being run: ``n if n > 0 else x.max().item()``."""
    if not tree.holds(info.node.body, node):
        return False
    branches, several = list(_branches(tree, info, node)), list(calls)
    for name in _defaults(info):
        values = [value for call in several for value in _handed(info, name, call, kind)]
        if any(value is _OPEN for value in values):
            continue
        for test, taken, branch in branches:
            told = [_value(test, name, value) for value in values]
            known = all(one is not _OPEN and type(one) is not _Given for one in told)
            if known and all(bool(one) is not taken for one in told):
                if not _is_set(tree, info, name, branch, before=True):
                    return True
    return False


class _Given:
    """An argument of which nothing is known but that it is one."""

    def __bool__(self) -> bool:
        raise TypeError


_SIZES = (1, 2**20)
"""What a size may be: what holds of the least and of a large one is taken to hold of all."""


def _handed(
    info: FunctionInfo, option: str, call: cst.CSTNode, kind: Callable[[cst.CSTNode], k.Kind]
) -> tuple[Any, ...]:
    """What a call may give an option: a constant, any size, a tensor; what is left out or not known is open."""
    given = _given(info, option, call)
    if len(given) != 1:
        return (_OPEN,)
    value = _value(given[0], "", None)
    if value is not _OPEN:
        return (value,)
    if _is_size(given[0]):
        return _SIZES
    return (_Given() if isinstance(kind(given[0]), k.Tensor) else _OPEN,)


def _is_size(node: cst.BaseExpression) -> bool:
    """``x.size(1)``, ``x.shape[1]``, ``len(x)``"""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name("size")), args=[_]):
            return True
        case cst.Call(func=cst.Name("len"), args=[_]):
            return True
        case cst.Subscript(value=cst.Attribute(attr=cst.Name("shape"))):
            return True
    return False


def _given(info: FunctionInfo, option: str, call: cst.CSTNode) -> list[cst.BaseExpression]:
    """What a call gives an option; nothing where stars may."""
    if not isinstance(call, cst.Call) or any(one.star for one in call.args):
        return []
    params = info.node.params
    names = [one.name.value for one in (*params.posonly_params, *params.params)][info.receivers :]
    positional = [one.value for one in call.args if one.keyword is None]
    given = [one.value for one in call.args if one.keyword and one.keyword.value == option]
    if option in names:
        given += positional[names.index(option) :][:1]
    return given


def options_handed(tree: Tree, info: FunctionInfo, node: cst.CSTNode) -> list[str]:
    """The parameter that a call is handed as ``inplace``, where it is False unless a call says otherwise.

    ``F.dropout(x, p, inplace=inplace)`` in a function that takes ``inplace=False`` writes to nothing then."""
    if not isinstance(node, cst.Call) or not tree.holds(info.node.body, node):
        return []
    around = tree.around(node)
    if any(isinstance(one, _SCOPES) for one in around[around.index(info.node) + 1 :]):
        return []
    given = [a.value for a in node.args if a.keyword is not None and a.keyword.value == "inplace"]
    defaults = _defaults(info)
    return [
        one.value
        for one in given
        if isinstance(one, cst.Name)
        and defaults.get(one.value) is False
        and not _is_set(tree, info, one.value, node)
    ]


def leaves_default(info: FunctionInfo, option: str, call: cst.CSTNode) -> bool:
    """Whether a call of a function leaves an option out, or gives it the value that it has by default."""
    if not isinstance(call, cst.Call) or any(one.star for one in call.args):
        return False
    default = _defaults(info).get(option, _OPEN)
    return default is not _OPEN and all(
        _is_same(one, default) for one in _given(info, option, call)
    )


def _is_same(node: cst.BaseExpression, default: Any) -> bool:
    value = _value(node, "", None)
    return type(value) is type(default) and value == default


def _defaults(info: FunctionInfo) -> dict[str, Any]:
    """The parameters with a constant default."""
    params = info.node.params
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    values = {p.name.value: _value(p.default, "", None) for p in every if p.default is not None}
    return {name: value for name, value in values.items() if value is not _OPEN}


def _branches(
    tree: Tree, info: FunctionInfo, node: cst.CSTNode
) -> Iterator[tuple[cst.BaseExpression, bool, cst.CSTNode]]:
    """The tests that say whether a function comes to a node, the outcome that leads there, and the branch behind it."""
    around = tree.around(node)
    for one in around[around.index(info.node) + 1 :]:
        if isinstance(one, _SCOPES):
            return  # names may mean something else there
        if isinstance(one, (cst.If, cst.IfExp, cst.While)):
            if tree.holds(one.body, node):
                yield one.test, True, one.body
            elif not isinstance(one, cst.While) and one.orelse and tree.holds(one.orelse, node):
                yield one.test, False, one.orelse


def _value(node: cst.CSTNode, name: str, default: Any) -> Any:
    """What an expression comes to where a name has the value of its default."""
    match node:
        case cst.Name(word):
            return default if word == name else _NAMED.get(word, _OPEN)
        case cst.Integer() | cst.Float() | cst.SimpleString():
            return syntax.literal(node)
        case cst.UnaryOperation(cst.Not(), inner):
            known = _value(inner, name, default)
            return _OPEN if known is _OPEN or type(known) is _Given else not known
        case cst.UnaryOperation(cst.Minus(), cst.Integer() | cst.Float() as inner):
            return -syntax.literal(inner)
        case cst.BooleanOperation(left, connective, right):
            deciding = isinstance(connective, cst.Or)
            known = [_value(one, name, default) for one in (left, right)]
            told = [bool(one) for one in known if one is not _OPEN and type(one) is not _Given]
            return deciding if deciding in told else (not deciding if len(told) == 2 else _OPEN)
        case cst.Tuple(elements) | cst.List(elements) | cst.Set(elements):
            values = [_value(one.value, name, default) for one in elements]
            starred = any(isinstance(one, cst.StarredElement) for one in elements)
            return _OPEN if starred or any(one is _OPEN for one in values) else tuple(values)
        case cst.Comparison(left, [cst.ComparisonTarget(comparing, right)]):
            sides = [_value(one, name, default) for one in (left, right)]
            return _OPEN if any(one is _OPEN for one in sides) else _compared(comparing, *sides)
    return _OPEN


def _compared(comparing: cst.CSTNode, left: Any, right: Any) -> Any:
    if isinstance(comparing, (cst.Is, cst.IsNot)) and not {left, right} & {None, True, False}:
        return _OPEN
    try:
        return _COMPARING[type(comparing)](left, right)
    except TypeError:  # it raises there
        return _OPEN


def _is_set(
    tree: Tree, info: FunctionInfo, name: str, branch: cst.CSTNode, before: bool = False
) -> bool:
    """Whether a function gives a parameter another value, outside of a branch that is not taken then.

    ``before``: what the branch is part of the value of counts no more, ``n = n if n > 0 else m``, but in a loop."""
    around = tree.around(branch)
    looped = any(isinstance(one, (cst.For, cst.While)) for one in around)
    for one in tree.within(info.node.body, *_BINDING):
        bound = one.name if isinstance(one, cst.AsName) else one.target
        named = any(isinstance(part, cst.Name) and part.value == name for part in tree.below(bound))
        if named and not tree.holds(branch, one):
            parent = tree.around(one)[-1]
            if not before or looped or parent not in around or not isinstance(parent, cst.Assign):
                return True
    return False
