"""Parameters of another module that a constructor keeps: ``LMHead(weight=self.embed.weight)``, ``self.weight = weight``.

torch registers one parameter under both names, which a Variable has too that is handed on itself and not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.kept import constructor, handed_on
from migrator.convert.kept import kept as what_is_kept
from migrator.convert.passes import targets
from migrator.convert.passes.parameter_lists import elements
from migrator.convert.passes.tying import is_linear, with_weight
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.tied import kept_whole

_REASON = "a constructor keeps a parameter of another module as its own"


@converts(cst.Call, of=(k.Class, k.Function, k.Unknown))
def handed(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure where such a constructor may be handed something else than a parameter, or one that is replaced."""
    init = constructor(rw.ctx, node) if node.args else None
    if init is None:
        return
    _check_handed_on(rw.ctx, node, init)
    _check_followed(rw.ctx, node, init)
    if not any(map(k.is_parameter, init.params.values())):
        return
    for name, item in bound_arguments(node, init):
        if k.is_parameter(init.params.get(name)):
            _check(rw.ctx, node, item.value)
    if any(item.star for item in node.args):
        raise Failure(node, "MUT001", _REASON, "hand it over by its name, and not with * or **")


def _check_followed(ctx: Context, node: cst.Call, init: FunctionInfo) -> None:
    """Raise a Failure for parameters in a tuple, or that become one of ``*weights``: who keeps them is not looked for."""
    named = {id(item) for name, item in bound_arguments(node, init) if name in init.params}
    for item in node.args:
        inside = list(elements(item.value))
        if id(item) in named and inside == [item.value]:
            continue
        if any(targets.names_variable(ctx, one) for one in inside):
            raise Failure(node, "MUT001", _REASON, "hand it over by its name, and not with others")


def _check_handed_on(ctx: Context, call: cst.Call, init: FunctionInfo) -> None:
    """Raise a Failure where a constructor hands what it keeps to one that would keep its value only."""
    for item, _, _ in handed_on(ctx, call, init):
        own = isinstance(item.value, cst.Name) and ctx.frame is not None
        if own and is_kept_whole(ctx, ctx.frame.info, item.value):  # type: ignore[union-attr, arg-type]
            if not handed_whole(ctx, item.value):
                raise Failure(item.value, "MUT001", _REASON, "keep it where it is handed over")


def _check(ctx: Context, call: cst.Call, value: cst.BaseExpression) -> None:
    made = targets.makes_parameter(ctx, value) or targets.holds_parameter(ctx, value)
    if made or ctx.facts.kind(value) == k.NONE:
        return
    info = ctx.frame.info if ctx.frame is not None else None
    if info is not None and isinstance(value, cst.Name) and not info.call_sites:
        if value.value in kept_whole(ctx.facts, info):
            return  # nothing builds this one: it hands on what it will be handed
    if not targets.names_variable(ctx, value):
        what = f"{_REASON}, and this is not known to be one"
        raise Failure(value, "MUT001", what, "hand it the parameter itself: `layer.weight`")
    if not isinstance(value, cst.Attribute):
        return
    weight = targets.layer_weight(ctx, value)
    if weight is not None and weight[1]:
        what = f"{_REASON}, which Flax keeps transposed"
        raise Failure(value, "MUT001", what, "read it in forward() from the layer itself")
    if weight is not None:
        check_not_replaced(ctx, call, value)


def check_shared(ctx: Context, node: cst.CSTNode, weights: Sequence[cst.Attribute]) -> None:
    """Raise a Failure where one of the layers whose parameter two share may be given another weight later."""
    for weight in weights:
        check_not_replaced(ctx, node, weight, "two layers share a parameter")


def check_not_replaced(
    ctx: Context, node: cst.CSTNode, weight: cst.Attribute, why: str = _REASON
) -> None:
    """Raise a Failure where a layer may be given another weight later, which would reach the other name too."""
    layer = weight.value
    name = layer.attr.value if isinstance(layer, cst.Attribute) else None
    for other in ctx.source.index.of_type(cst.Assign):
        if not targets.makes_parameter(ctx, other.value):
            continue
        for one in other.targets:
            target = one.target
            if not isinstance(target, cst.Attribute) or target.attr.value != weight.attr.value:
                continue
            base = target.value
            if ctx.is_self(base) or (isinstance(base, cst.Name) and base.value == "self"):
                continue  # it is replaced by a new Variable
            if name is not None and isinstance(base, cst.Attribute):
                own = ctx.is_self(layer.value) and _of_another(ctx, other, base)  # type: ignore[attr-defined]
                if base.attr.value != name or own:
                    continue
            if not _runs_before(ctx, other, node):
                what = f"{why}, and line {ctx.source.span(other).line} gives the layer another one"
                raise Failure(node, "MUT001", what, "make them one after that")


def _of_another(ctx: Context, node: cst.CSTNode, layer: cst.Attribute) -> bool:
    """Whether ``self.layer`` is that of a class that has nothing to do with the one being converted."""
    if not (isinstance(layer.value, cst.Name) and layer.value.value == "self"):
        return False
    classes = [one for one in ctx.source.index.around(node) if isinstance(one, cst.ClassDef)]
    mine = {one.node for one in ctx.owner.lineage()} if ctx.owner is not None else set()
    infos = [info for info in ctx.facts.classes.values() if info.node in classes]
    return bool(infos) and not any(
        info.node in mine or ctx.owner in info.lineage() for info in infos
    )


def _runs_before(ctx: Context, one: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether a statement runs before another one in the constructor, itself or in a method that is called before."""
    tree = ctx.facts.tree
    if ctx.frame is None or not ctx.in_init or not tree.has(node):
        return False
    body, line = ctx.frame.info.node.body, ctx.source.span(node).line
    if tree.holds(body, one):
        return bool(ctx.source.span(one).line < line)
    around = [n for n in ctx.source.index.around(one) if isinstance(n, cst.FunctionDef)]
    named = ctx.source.index.reading(ctx.source.tree, around[-1].name.value) if around else []
    return bool(named) and all(
        tree.holds(body, call) and ctx.source.span(call).line < line for call in named
    )


def handed_whole(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is an argument that a constructor keeps as the parameter that it is."""
    tree = ctx.facts.tree
    if not tree.has(node):
        return False
    item = tree.parent(node)
    if not isinstance(item, cst.Arg) or item.value is not node or item.star:
        return False
    call = tree.parent(item)
    init = constructor(ctx, call) if isinstance(call, cst.Call) else None
    if init is None or not any(map(k.is_parameter, init.params.values())):
        return False
    given = {id(one): name for name, one in bound_arguments(call, init)}
    return k.is_parameter(init.params.get(given.get(id(item), "")))


@converts(cst.Call, called=("functools.partial",))
def handed_early(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``partial(LMHead, weight=self.embed.weight)``."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "functools.partial" or len(node.args) < 2:
        return
    kind = ctx.kind(node.args[0].value)
    info = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    init = info.method("__init__") if info is not None and info.torch_base else None
    given = [a.value for a in node.args[1:] if targets.names_variable(ctx, a.value)]
    if init is not None and given and what_is_kept(ctx, init):
        raise Failure(given[0], "MUT001", _REASON, "call the class itself")


@converts(cst.Attribute, cst.Name, kinds=(k.Tensor, k.Optional))
def argument(rw: Rewriter, node: cst.Attribute | cst.Name) -> Any:
    """``LMHead(weight=self.embed.weight)`` → ``LMHead(weight=self.embed.embedding)``."""
    if not targets.is_variable(rw.ctx, node) or not handed_whole(rw.ctx, node):
        return None
    return targets.variable_reference(rw, node)[0]


@converts(cst.Assign, targets=(cst.Attribute,), values=(cst.Name,))
def kept(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.weight = weight`` and ``self.decoder.weight = weight``: another name of the parameter."""
    ctx, value, target = rw.ctx, node.value, node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or ctx.frame is None:
        return None
    if not isinstance(value, cst.Name) or not is_kept_whole(ctx, ctx.frame.info, value):
        return None
    _check_sites(ctx, node, ctx.frame.info)
    weight = targets.layer_weight(ctx, target)
    if weight is None:
        if not ctx.is_self(target.value):
            raise Failure(node, "MUT001", _REASON, "say what the module is with a type hint")
        new = syntax.changed(target, value=rw.visit(target.value))
        return syntax.changed(node, targets=[syntax.changed(node.targets[0], target=new)])
    check_not_replaced(ctx, node, target)
    if not weight[1]:
        named, _ = targets.variable_reference(rw, target)
        return syntax.changed(node, targets=[syntax.changed(node.targets[0], target=named)])
    if not is_linear(ctx.kind(target.value)) or isinstance(ctx.kind(value), k.Optional):
        raise Failure(node, "API006", _REASON, "keep it in an attribute, and call F.linear with it")
    return with_weight(rw, node, target, value)


def is_kept_whole(ctx: Context, info: FunctionInfo, value: cst.Name) -> bool:
    """Whether a name is that of a constructor's argument that is a parameter, and kept as it is."""
    known = info.params.get(value.value)
    filled = targets.is_variable(ctx, value)
    return value.value in kept_whole(ctx.facts, info) and (k.is_parameter(known) or filled)


def _check_sites(ctx: Context, node: cst.CSTNode, info: FunctionInfo) -> None:
    """Raise a Failure where something else than a plain call may build an instance: ``partial(LMHead, weight=…)``."""
    for site in info.call_sites:
        init = constructor(ctx, site) if isinstance(site, cst.Call) else None
        func = site.func if isinstance(site, cst.Call) else None
        heir = isinstance(func, cst.Attribute) and syntax.is_super(func.value)
        if init is not info and not heir:
            what = f"{_REASON}, and line {ctx.source.span(site).line} builds it otherwise than by a plain call"
            raise Failure(node, "MUT001", what, "call the class by its name")
