"""Functions of the project that draw random numbers and are handed on as values take their generator along."""

from __future__ import annotations

from collections import Counter
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.handed import check_written
from migrator.convert.handed_on import stands_as_value
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

_HANDING = (cst.Arg, cst.Return, cst.BooleanOperation, cst.IfExp, cst.Assign, cst.Element)


@converts(cst.Name, cst.Attribute, kinds=(k.Function,))
def handed_on(rw: Rewriter, node: cst.Name | cst.Attribute) -> Any:
    """``named_apply(init_weights, model)`` → ``named_apply(functools.partial(init_weights, rngs=rngs), model)``."""
    _check_writes(rw.ctx, node)
    rngs = _generator(rw.ctx, node)
    if rngs is None or not isinstance(rw.ctx.source.index.around(node)[-1], _HANDING):
        return None
    rw.ctx.helpers.use("functools")
    call = cst.Call(syntax.parse("functools.partial"), [cst.Arg(node)])
    return syntax.add_keyword(call, "rngs", rngs)


@converts(cst.Name, cst.Attribute, kinds=(k.Other,))
def writing_object(rw: Rewriter, node: cst.Name | cst.Attribute) -> None:
    """Raise a Failure for an object of another file's class that writes to what it is called with, handed on as a value."""
    if rw.ctx.facts.linked is not None and rw.ctx.facts.tree.has(node):
        _check_writes(rw.ctx, node)


def _check_writes(ctx: Context, node: cst.Name | cst.Attribute) -> None:
    """Raise a Failure for another file's function that writes to its argument, where it is handed on as a value."""
    kind = ctx.facts.kind(node)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    made = ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    if made is not None and not made.torch_base:  # an object that is called
        info = made.method("__call__")
    if info is None or info.settled is None or info.settled.told_to:
        return
    given = syntax.parameters(info.node)
    written = [
        name
        for name in sorted(info.settled.mutates)
        if name not in given or given[name].default is None or info.params.get(name) != k.UNKNOWN
    ]  # who gets it as a value gives it what it works on: an option of which nothing is known is often a number
    if written and stands_as_value(ctx, node):
        param, called = written[0], made.short if made is not None else info.short
        what = f"{called}() changes its argument `{param}` in place, and is handed on as a value"
        raise Failure(node, "MUT003", what, "work on a copy there, or call it by its name")


@converts(cst.Call, called=("functools.partial",))
def partial_of_drawing(rw: Rewriter, node: cst.Call) -> Any:
    """``partial(init_weights, std=0.1)`` of a function that draws."""
    if rw.ctx.facts.callee(node) != "functools.partial" or not node.args:
        return None
    first = node.args[0].value
    rngs = _generator(rw.ctx, first) if isinstance(first, (cst.Name, cst.Attribute)) else None
    if rngs is None:
        return None
    args = [node.args[0], *(rw.visit(a) for a in node.args[1:])]
    return syntax.add_keyword(syntax.with_args(node, args), "rngs", rngs)


@converts(cst.Call, when=lambda ctx: ctx.facts.linked is not None)
def run_of_another(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure where ``super().forward(x)``, ``self.act.__call__(x)`` writes to what is read again."""
    func = node.func
    if not isinstance(func, cst.Attribute):
        return
    found: FunctionInfo | None = None
    if syntax.is_super(func.value) and rw.ctx.owner is not None:
        methods = (one.method(func.attr.value) for one in rw.ctx.owner.parents)
        found = next((one for one in methods if one is not None), None)
    elif func.attr.value == "__call__":
        own = rw.ctx.class_of(rw.ctx.kind(func.value))
        found = own.method("forward") if own is not None else None
    if found is not None:
        check_written(rw.ctx, node, found)


_MAPS = ("builtins.map", "itertools.starmap")


@converts(cst.Call, called=_MAPS)
def mapped(rw: Rewriter, node: cst.Call) -> Any:
    """``map(Block, dims)`` → ``map(functools.partial(build, Block, rngs=rngs), dims)``."""
    if rw.ctx.facts.callee(node) not in _MAPS or not node.args or node.args[0].star:
        return None
    if not _takes_generator(rw.ctx, node.args[0].value):
        return None
    first = syntax.changed(node.args[0], value=_building(rw, node, node.args[0].value))
    return syntax.with_args(node, [first, *(rw.visit(a) for a in node.args[1:])])


@converts(cst.Call, of=(k.Function,))
def built_elsewhere(rw: Rewriter, node: cst.Call) -> Any:
    """``make(nn.Linear, 3)`` of another file's ``def make(fn, *a): return fn(*a)``, which takes no ``rngs``.

    Raises:
      Failure: that function does more with what it is handed than call it.
    """
    ctx = rw.ctx
    kind = ctx.facts.kind(node.func)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or info.settled is None or info.owner is not None or ctx.plan.how(info):
        return None
    given = {item: name for name, item in bound_arguments(node, info)}
    made = {
        item: item.value
        for item, name in given.items()
        if _takes_generator(ctx, item.value)
        and not isinstance(ctx.kind(item.value), k.Unknown)
        and name in called_parameters(info)
    }
    only = called_parameters(info, only=True)
    # of a function that is not known, and may have its generator, nothing is told
    made = {i: v for i, v in made.items() if given[i] in only or ctx.kind(v) != k.Function("")}
    if not made:
        return None
    for item in made:
        if given[item] not in only:
            what = f"`{info.short}` of another file calls what it is handed, which takes rngs here"
            raise Failure(item, "API003", what, "hand it a function that builds the layer")
    return syntax.with_args(
        node,
        [
            syntax.changed(item, value=_building(rw, node, item.value))
            if item in made
            else rw.visit(item)
            for item in node.args
        ],
    )


@converts(cst.Call, of=(k.Class,), when=lambda ctx: ctx.facts.linked is not None)
def drawing_elsewhere(rw: Rewriter, node: cst.Call) -> None:
    """``Wrap(layer, noisy)`` of another file's class, whose forward pass calls a function that draws.

    Raises:
      Failure: nothing there hands it the generator that it takes in the output.
    """
    kind = rw.ctx.kind(node.func)
    info = rw.ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    if info is None or info.settled is None:
        return
    for item in node.args:
        handed = rw.ctx.facts.kind(item.value)
        function = rw.ctx.facts.names.get(handed.name) if isinstance(handed, k.Function) else None
        if not isinstance(function, FunctionInfo) or rw.ctx.plan.how(function) != "param":
            continue
        if not rw.ctx.plan.builds_time(function):
            what = f"`{function.short}` draws random numbers, and `{info.short}` of another file hands it no generator"
            raise Failure(item, "API003", what, "convert both in one file, or draw in a method")


def called_parameters(info: FunctionInfo, only: bool = False) -> frozenset[str]:
    """The parameters that a function calls; with ``only``, those it does nothing else with."""
    if info.settled is not None:
        return info.settled.only_calls if only else info.settled.calls
    if info.owner is not None:
        return frozenset()
    called = Counter(
        n.func.value
        for n in syntax.walk(info.node.body)
        if isinstance(n, cst.Call) and isinstance(n.func, cst.Name)
    )
    found = called.keys() & info.params.keys()
    if only and found:
        names = syntax.names(info.node.body)
        return frozenset(name for name in found if names.get(name) == called[name])
    return frozenset(found)


def _building(rw: Rewriter, call: cst.Call, value: cst.BaseExpression) -> cst.BaseExpression:
    """``functools.partial(build, Block, rngs=rngs)``."""
    rw.ctx.helpers.use("functools")
    build = rw.ctx.helpers.need(module_file("rules.compat.factories"), "build")
    made = cst.Call(syntax.parse("functools.partial"))
    made = syntax.with_args(made, [cst.Arg(cst.Name(build)), cst.Arg(rw.visit(value))])
    return syntax.add_keyword(made, "rngs", rw.ctx.rngs(call))


def _takes_generator(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a class of modules, or a function of the project that draws or builds, is handed on, or may be."""
    kind = ctx.kind(node)
    if k.is_any_class(kind) or kind in (k.Function(""), k.UNKNOWN):
        frame = ctx.frame
        return isinstance(node, cst.Name) and ctx.in_init and ctx.plan.how(frame.info) is not None  # type: ignore[union-attr]
    if isinstance(kind, k.Class):
        info = ctx.facts.classes.get(kind.name)
        return bool(definitions.layers(kind.name)) or (info is not None and bool(info.torch_base))
    function = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if function is None or function.outer is not None or function.returns == k.NONE:
        return False
    return ctx.plan.how(function) == "param"


def _generator(ctx: Context, node: cst.Name | cst.Attribute) -> cst.BaseExpression | None:
    """The generator that a function of the project needs which returns nothing: one that initialises."""
    kind = ctx.facts.kinds.get(node)
    if type(kind) is not k.Function or ctx.frame is None:
        return None
    info = ctx.facts.names.get(kind.name)
    if info is None or info.outer is not None or info.returns != k.NONE:
        return None
    return ctx.rngs(node) if ctx.plan.how(info) == "param" else None
