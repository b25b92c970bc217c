"""Weights that are taken out of layers which nobody keeps: ``self.weight = nn.Linear(a, b, bias=False).weight``.

Such a weight is a parameter of its own, as ``nn.Parameter(nn.Linear(a, b, bias=False).weight)`` is, and says so there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_LAYER = r"\bnn\.(?:Linear|Conv[123]d|ConvTranspose[123]d|Bilinear|Embedding)\("
_MADE = re.compile(_LAYER)
_READ = re.compile(r"\)\.(?:weight|bias)\b")
_LOCAL = re.compile(rf"^[ \t]+(\w+) *= *(?:torch\.)?{_LAYER}", re.M)
_WEIGHTS = ("weight", "bias")
_KEEPING = frozenset("append extend ParameterList ParameterDict register_parameter setattr".split())


def as_parameters(tree: cst.Module, text: str) -> cst.Module:
    """A file whose weights of layers that nobody keeps are parameters of their own."""
    if (".weight" not in text and ".bias" not in text) or _MADE.search(text) is None:
        return tree
    local = any(re.search(rf"\b{name}\.(?:weight|bias)\b", text) for name in _LOCAL.findall(text))
    if not local and _READ.search(text) is None:
        return tree
    return with_functions(tree, _function)


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    found: dict[cst.CSTNode, cst.Call] = {n: _wrapped(n, func) for n, func in _fresh(function)}
    if not found:
        return function

    def visit(node: cst.CSTNode) -> Any:
        return found[node] if node in found else syntax.rebuild(node, visit)

    return syntax.changed(function, body=visit(function.body))


def _wrapped(node: cst.Attribute, func: cst.Attribute) -> cst.Call:
    name = syntax.changed(func, attr=cst.Name("Parameter"))
    made: cst.Call = syntax.with_args(cst.Call(name), [cst.Arg(node)])
    return made


def _fresh(function: cst.FunctionDef) -> Iterator[tuple[cst.Attribute, cst.Attribute]]:
    """The weights that are kept, and the class of the layer that each is taken out of."""
    kept = {
        node
        for node in _kept(function.body)
        if isinstance(node, cst.Attribute) and node.attr.value in _WEIGHTS
    }
    local = _thrown_away(function) if kept else {}
    for node in kept:
        made: cst.BaseExpression | None = node.value
        if isinstance(made, cst.Name):
            made = local.get(made.value)
        func = _class(made)
        if func is None or made is None:
            continue
        if node.attr.value == "weight" or not _may_lack_bias(made):
            yield node, func


def _may_lack_bias(call: cst.BaseExpression) -> bool:
    args = call.args if isinstance(call, cst.Call) else ()
    named = any(a.star or (a.keyword is not None and a.keyword.value == "bias") for a in args)
    return named or sum(a.keyword is None for a in args) > 2


def _class(node: cst.BaseExpression | None) -> cst.Attribute | None:
    """``nn.Linear`` of a call of it."""
    func = node.func if isinstance(node, cst.Call) else None
    if isinstance(func, cst.Attribute) and _MADE.search(f"{syntax.code(func)}("):
        return func
    return None


def _kept(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The values that are assigned, returned or put into a list of parameters."""
    for one in syntax.walk(node):
        if isinstance(one, (cst.Assign, cst.AnnAssign, cst.Return)) and one.value is not None:
            targets = [t.target for t in one.targets] if isinstance(one, cst.Assign) else []
            if not any(_is_of_another(target) for target in targets):
                yield from _parts(one.value)
        elif isinstance(one, cst.Call):
            func = one.func.attr if isinstance(one.func, cst.Attribute) else one.func
            if isinstance(func, cst.Name) and func.value in _KEEPING:
                for item in one.args:
                    yield from _parts(item.value)


def _is_of_another(target: cst.CSTNode) -> bool:
    """``self.fc.weight``, which a layer has already."""
    return isinstance(target, cst.Attribute) and isinstance(target.value, cst.Attribute)


def _parts(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(value, cst.IfExp):
        yield from _parts(value.body)
        yield from _parts(value.orelse)
    elif isinstance(value, (cst.Tuple, cst.List)):
        for element in value.elements:
            yield from _parts(element.value)
    elif isinstance(value, cst.Dict):
        for entry in value.elements:
            yield from _parts(entry.value)
    elif isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        yield from _parts(value.elt)
    elif isinstance(value, cst.DictComp):
        yield from _parts(value.value)
    else:
        yield value


def _thrown_away(function: cst.FunctionDef) -> dict[str, cst.BaseExpression]:
    """Local layers of which only the weights are read, each once but for what initialises it; and how they are made."""
    made: dict[str, cst.BaseExpression] = {}
    bound: list[str] = []
    for node in syntax.walk(function.body):
        bound.extend(_targets(node))
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            if isinstance(target, cst.Name) and _class(node.value) is not None:
                made[target.value] = node.value
    names = syntax.names(function.body)
    return {
        name: call
        for name, call in made.items()
        if bound.count(name) == 1 and names[name] == 1 + sum(_reads(function.body, name))
    }


def _targets(node: cst.CSTNode) -> Iterator[str]:
    targets: Sequence[cst.CSTNode] = ()
    if isinstance(node, cst.Assign):
        targets = [one.target for one in node.targets]
    elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr)):
        targets = [node.target]
    for target in targets:
        if isinstance(target, (cst.Name, cst.Tuple, cst.List)):
            yield from syntax.names(target)


def _reads(body: cst.CSTNode, name: str) -> Iterator[int]:
    """One for each read of a weight that is kept, if there is no other of the same, and for each that is initialised."""
    kept: list[str] = []
    every = set(_kept(body))
    for node in syntax.walk(body):
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name):
            if node.value.value == name and node.attr.value in _WEIGHTS and node in every:
                kept.append(node.attr.value)
                yield 1
        if (
            isinstance(node, cst.Call)
            and node.args
            and re.search(r"\binit\.\w+_$", syntax.code(node.func))
        ):
            first = node.args[0].value
            if isinstance(first, cst.Attribute) and isinstance(first.value, cst.Name):
                if first.value.value == name and first.attr.value in _WEIGHTS:
                    yield 1
    if not kept or len(kept) != len(set(kept)):  # several are taken for one
        yield -1000
