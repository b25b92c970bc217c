"""``return loss, losses`` with ``losses.append(one.item())``: numbers that a function gives back beside tensors.

Whoever calls it outside of what JAX traces gets Python's numbers. Traced, what it gives back are arrays in any case, and
the number is one of no axes that has no gradient. Nothing may ask for the number on its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.handed_on import is_handed_on
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_DISPLAYS = (cst.Tuple, cst.List, cst.Dict)
_INNER = (cst.FunctionDef, cst.Lambda, cst.ClassDef, cst.GeneratorExp, cst.ListComp, cst.DictComp)
_PLAIN = re.compile(r"staticmethod|classmethod|(torch\.)?(no_grad|inference_mode)\(\)")
"""Decorators that hand on what a function returns."""


def returned_numbers(ctx: Context) -> dict[cst.CSTNode, cst.BaseExpression]:
    """The calls that take such numbers out, and of what; what was said against them is taken back."""
    if ctx.returned_numbers is None:
        ctx.returned_numbers = {}
        tree = ctx.source.index
        for node in [n for n, (rule, _, _) in ctx.blocked.items() if rule == "DYN004"]:
            tensor = _taken_out(ctx, node) if tree.has(node) else None
            whole = _as_float(ctx, node) if tensor is not None else node
            if tensor is not None and _only_returned(ctx, whole):
                ctx.returned_numbers[whole] = tensor
                del ctx.blocked[node]
    return ctx.returned_numbers


def _taken_out(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """``x`` of ``x.item()`` and of ``float(x)``."""
    if not isinstance(node, cst.Call):
        return None
    name = ctx.facts.callee(node)
    if name == "Tensor.item" and isinstance(node.func, cst.Attribute) and not node.args:
        return node.func.value
    if name != "builtins.float" or len(node.args) != 1 or node.args[0].keyword or node.args[0].star:
        return None
    kind = ctx.facts.kind(node.args[0].value)
    return node.args[0].value if k.perhaps_tensor(kind) is not None else None


def _as_float(ctx: Context, node: cst.CSTNode) -> cst.CSTNode:
    """``float(x.item())`` around ``x.item()``, which is one taking out."""
    around = ctx.source.index.around(node)
    call = around[-2] if len(around) > 1 and isinstance(around[-1], cst.Arg) else None
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "builtins.float":
        return node
    return (
        call if len(call.args) == 1 and not call.args[0].keyword and not call.args[0].star else node
    )


def _only_returned(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a number gets into what its function returns and nowhere else, and no caller here asks for it."""
    tree = ctx.source.index
    around = tree.around(node)
    functions = [one for one in around if isinstance(one, (*_INNER, cst.CompFor))]
    function = functions[-1] if functions else None
    info = ctx.facts.functions.get(function) if isinstance(function, cst.FunctionDef) else None
    if info is None or info.generator or info.node.asynchronous is not None:
        return False
    if info.outer is not None or info.settled is not None or is_handed_on(ctx, info):
        return False
    if any(not _PLAIN.fullmatch(syntax.code(one.decorator)) for one in info.node.decorators):
        return False
    names: set[str] = set()
    returned = _place(ctx, node, info)
    if isinstance(returned, str):
        names, returned = {returned}, None
    elif returned is None:
        return False
    parts = _parts(ctx, info, names, returned)
    return parts is not None and all(
        _is_unread(ctx, call, caller, parts) for call, caller in info.call_sites.items()
    )


def _place(ctx: Context, node: cst.CSTNode, info: FunctionInfo) -> cst.Return | str | None:
    """The ``return`` whose value a number is part of, or the local name of what holds it."""
    tree = ctx.source.index
    inner, around = node, tree.around(node)
    while around:
        outer = around.pop()
        if isinstance(outer, (cst.Element, cst.DictElement, *_DISPLAYS)):
            if isinstance(outer, cst.DictElement) and outer.value is not inner:
                return None
            inner = outer
            continue
        if isinstance(outer, cst.IfExp) and outer.test is not inner:
            inner = outer  # loss.item() if reduce else loss
            continue
        if isinstance(outer, cst.Return):
            return outer
        if isinstance(outer, cst.Assign) and outer.value is inner and len(outer.targets) == 1:
            held = isinstance(inner, (*_DISPLAYS, cst.Call)) and inner is not node
            return _held(ctx, outer.targets[0].target, info, held)
        if isinstance(outer, cst.Arg) and around and isinstance(around[-1], cst.Call):
            call = around.pop()
            if _makes_dict(ctx, call):
                inner = call
                continue
            func, added = call.func, _adds(call)
            return _held(ctx, func.value, info, True) if added else None
        return None
    return None


def _makes_dict(ctx: Context, call: cst.Call) -> bool:
    """``dict(loss=loss.item())``"""
    named = all(a.keyword is not None and not a.star for a in call.args)
    return named and ctx.facts.callee(call) == "builtins.dict"


def _adds(call: cst.Call) -> bool:
    """``found.append(x)``, ``stats.update(loss=x)``"""
    func = call.func
    return isinstance(func, cst.Attribute) and (
        func.attr.value == "append"
        or (
            func.attr.value == "update"
            and all(a.keyword is not None or isinstance(a.value, _DISPLAYS) for a in call.args)
        )
    )


def _held(ctx: Context, target: cst.CSTNode, info: FunctionInfo, whole: bool) -> str | None:
    """The name of a number, list or dict of a function's own that is only filled and returned."""
    if isinstance(target, cst.Subscript):
        target, whole = target.value, True
    if not isinstance(target, cst.Name) or target.value in info.params:
        return None
    tree, name = ctx.source.index, target.value
    allowed: set[int] = set()
    made = False
    for node in tree.within(info.node.body, cst.Assign, cst.AnnAssign, cst.Call):
        if isinstance(node, cst.Call):
            func = node.func
            alone = isinstance(tree.around(node)[-1], cst.Expr)
            if isinstance(func, cst.Attribute) and _adds(node) and alone and whole:
                allowed.add(id(func.value))
            continue
        bound = (
            [one.target for one in node.targets] if isinstance(node, cst.Assign) else [node.target]
        )
        if len(bound) > 1:
            continue
        if isinstance(bound[0], cst.Subscript) and whole:
            allowed.add(id(bound[0].value))
        elif isinstance(bound[0], cst.Name) and node.value is not None:
            if bound[0].value == name and whole and not _is_display(ctx, node.value):
                return None
            made = made or bound[0].value == name
            allowed.add(id(bound[0]))
    for given in _returns(ctx, info):
        allowed.update(id(one) for one in _leaves(given))
    found = [n for n in tree.within(info.node.body, cst.Name) if n.value == name]
    labels = {id(a.keyword) for a in tree.within(info.node.body, cst.Arg) if a.keyword is not None}
    labels |= {id(a.attr) for a in tree.within(info.node.body, cst.Attribute)}
    fine = all(id(one) in allowed or id(one) in labels for one in found)
    return name if made and fine else None


def _is_display(ctx: Context, node: cst.BaseExpression) -> bool:
    """A new list or dict."""
    if isinstance(node, cst.Call):
        empty = ctx.facts.callee(node) == "builtins.list" and not node.args
        return empty or _makes_dict(ctx, node)
    return isinstance(node, (cst.List, cst.Dict))


def _returns(ctx: Context, info: FunctionInfo) -> Iterator[cst.BaseExpression]:
    """What a function itself returns, not those in it."""
    tree = ctx.source.index
    for node in tree.within(info.node.body, cst.Return):
        around = [
            one for one in tree.around(node) if isinstance(one, (cst.FunctionDef, cst.Lambda))
        ]
        if node.value is not None and around[-1] is info.node:
            yield node.value


def _leaves(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The expressions whose values a returned expression is made of, within tuples, lists and dicts."""
    if isinstance(node, _DISPLAYS):
        for one in node.elements:
            if isinstance(one, (cst.Element, cst.DictElement)):
                yield from _leaves(one.value)
    elif isinstance(node, cst.Call) and syntax.code(node.func) == "dict":
        for arg in node.args:
            yield from _leaves(arg.value)
    else:
        yield node


def _parts(
    ctx: Context, info: FunctionInfo, names: set[str], only: cst.Return | None
) -> dict[int, set[int]] | None:
    """The places of what holds numbers in the tuples that a function returns, by how many these are of."""
    found: dict[int, set[int]] = {}
    for value in _returns(ctx, info):
        items = [one.value for one in value.elements] if isinstance(value, cst.Tuple) else [value]
        several = isinstance(value, cst.Tuple)
        places = found.setdefault(len(items) if several else 0, set())
        for place, item in enumerate(items):
            held = syntax.names(item).keys() & names
            if held or (only is not None and value is only.value and _holds_number(ctx, item)):
                places.add(place)
    return found


def _holds_number(ctx: Context, item: cst.CSTNode) -> bool:
    return any(_taken_out(ctx, one) is not None for one in syntax.walk(item))


def _is_unread(
    ctx: Context,
    call: cst.CSTNode,
    caller: FunctionInfo | None,
    parts: dict[int, set[int]],
) -> bool:
    """Whether a caller that JAX may trace does not ask for the numbers that a call gives back."""
    tree = ctx.source.index
    if caller is None or not ctx.is_traced(caller):
        return True
    around = tree.around(call) if tree.has(call) else []
    outer = around[-1] if around else None
    if isinstance(outer, cst.Expr):
        return True
    if isinstance(outer, cst.Return):
        return not caller.call_sites
    if not isinstance(outer, cst.Assign) or len(outer.targets) != 1:
        return False
    target = outer.targets[0].target
    if not isinstance(target, cst.Tuple) or set(parts) != {len(target.elements)}:
        return False
    for place in parts[len(target.elements)]:
        one = target.elements[place]
        if not isinstance(one, cst.Element) or not isinstance(one.value, cst.Name):
            return False
        if not _only_goes_on(ctx, caller, one.value):
            return False
    return True


def _only_goes_on(ctx: Context, caller: FunctionInfo, name: cst.Name) -> bool:
    """Whether a name of a caller is read nowhere, but for its own ``return`` where nobody here calls it."""
    tree = ctx.source.index
    bound = {id(n) for one in tree.within(caller.node, cst.AssignTarget) for n in tree.below(one)}
    if not caller.call_sites:
        for value in _returns(ctx, caller):
            bound.update(id(n) for n in _leaves(value))
    reads = [n for n in tree.within(caller.node.body, cst.Name) if n.value == name.value]
    return all(id(n) in bound for n in reads)


# --- the output -------------------------------------------------------------------------------------------------------


@converts(cst.Call, when=lambda ctx: bool(returned_numbers(ctx)))
def number(rw: Rewriter, node: cst.Call) -> Any:
    """``r_loss.item()`` → ``number(r_loss)``; ``float(correct)`` → ``float_number(correct)``, which may be of integers."""
    tensor = returned_numbers(rw.ctx).get(node)
    if tensor is None:
        return None
    kind = rw.ctx.facts.kind(tensor)
    real = isinstance(kind, k.Tensor) and kind.dtype == "float"
    made = real or rw.ctx.facts.callee(node) == "Tensor.item"
    helper = "number" if made else "float_number"
    name = rw.ctx.helpers.need(module_file("rules.compat.numbers"), helper)
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(tensor))])
