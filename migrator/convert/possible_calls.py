"""Calls that may run a method of the file though no kind says so: by a computed name, of a base class, of anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import libcst as cst

from migrator import syntax, texts
from migrator.convert.context import Context
from migrator.convert.handed_on import may_run
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

Calls = dict[cst.CSTNode, FunctionInfo | None]


def possible_calls(ctx: Context, info: FunctionInfo) -> Mapping[cst.CSTNode, FunctionInfo | None]:
    """The calls that may run a method, and the function that makes each, beside those that surely do.

    ``getattr(self, name)(x)``, ``self.encode(x)`` in a base that leaves ``encode`` to its heirs or has one of its own,
    ``part.encode(x)`` of what is not known.
    """
    if info.owner is None or info.settled is not None:
        return {}
    if ctx.possible_calls is None:
        ctx.possible_calls = {}
        names = {name for one in ctx.facts.classes.values() for name in one.methods}
        for call in ctx.source.index.of_type(cst.Call):
            if isinstance(call.func, cst.Attribute) and call.func.attr.value not in names:
                continue
            for method in _methods(ctx, call):
                if call not in method.call_sites:
                    ctx.possible_calls.setdefault(method, {})[call] = _caller(ctx, call)
    return ctx.possible_calls.get(info, {})


def may_be_run(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function may be run on tensors: by a forward pass, by others, or by a call that may mean it."""
    if ctx.plan.builds_time(info):
        return False
    around: FunctionInfo | None = info
    while around is not None:
        if may_run(ctx, around) or possible_calls(ctx, around):
            return True
        around = around.outer
    return False


def as_called(ctx: Context, call: cst.Call) -> cst.Call:
    """``type(self).scale(self, x)`` without the object, which the method is handed as its own."""
    return syntax.with_args(call, list(call.args[1:])) if _of_class(ctx, call.func) else call


def _caller(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    for around in reversed(ctx.source.index.around(call)):
        if isinstance(around, cst.FunctionDef) and around in ctx.facts.functions:
            return ctx.facts.functions[around]
    return None


def _methods(ctx: Context, call: cst.Call) -> Iterator[FunctionInfo]:
    """The methods that a call may run, but for that which it surely runs."""
    for found in _sources(ctx, call, call.func):
        if isinstance(found, cst.Attribute):
            yield from _named(ctx, found.value, found.attr.value, ctx.kind(found))
        elif len(found.args) > 1:
            name = texts.pattern(found.args[1].value)
            for method in _named(ctx, found.args[0].value, re.compile(name), k.UNKNOWN):
                if name != _ANY or _is_written_out(ctx, method.short):
                    yield method


_ANY = ".*"


def _is_written_out(ctx: Context, name: str) -> bool:
    """Whether a text of the file is a name: of what is asked for by one of which nothing is known, it may be that."""
    return f'"{name}"' in ctx.source.text or f"'{name}'" in ctx.source.text


def _sources(
    ctx: Context, call: cst.Call, func: cst.BaseExpression, seen: frozenset[str] = frozenset()
) -> Iterator[cst.Attribute | cst.Call]:
    """What is called, if it is read of an object; of a local name, what the function binds to it.

    ``seen``: the names that led here, ``m`` of ``m = f if a else m`` for one.
    """
    if isinstance(func, cst.Attribute):
        yield func
    elif isinstance(func, cst.Call) and ctx.facts.callee(func) == "builtins.getattr":
        yield func
    elif isinstance(func, cst.IfExp):
        yield from _sources(ctx, call, func.body, seen)
        yield from _sources(ctx, call, func.orelse, seen)
    elif isinstance(func, cst.Name) and func.value not in seen:
        caller = _caller(ctx, call)
        lines = ctx.source.index.within(caller.node.body, cst.Assign) if caller is not None else ()
        for line in lines:
            bound = [one.target for one in line.targets]
            if any(isinstance(one, cst.Name) and one.value == func.value for one in bound):
                if not isinstance(line.value, cst.Name):
                    yield from _sources(ctx, call, line.value, seen | {func.value})


def _named(
    ctx: Context, holder: cst.BaseExpression, name: str | re.Pattern[str], kind: k.Kind
) -> Iterator[FunctionInfo]:
    own = isinstance(kind, k.Function) and kind.name in ctx.facts.names
    if not (isinstance(kind, k.Unknown) or own):
        return
    for info in _classes(ctx, holder, own):
        if isinstance(name, str):
            found = [info.methods[name]] if name in info.methods else []
        else:
            found = [method for word, method in info.methods.items() if name.fullmatch(word)]
        yield from (method for method in found if method.settled is None)


def _classes(ctx: Context, holder: cst.BaseExpression, own: bool) -> list[ClassInfo]:
    """The classes whose methods may be meant; ``own``: by a call of a method that is known, which heirs may override."""
    held, every = _of_class(ctx, holder) or holder, list(ctx.facts.classes.values())
    kind = ctx.kind(held)
    known = ctx.class_of(kind)
    if isinstance(kind, k.Other):
        known = ctx.facts.classes.get(kind.type)
    if known is not None:
        heirs = [one for one in every if known in one.lineage()]
        return list({base for heir in heirs for base in (heir.lineage() if not own else [heir])})
    if own or not (isinstance(kind, k.Unknown) or k.is_any_module(kind)):
        return []
    return every


def _of_class(ctx: Context, func: cst.BaseExpression) -> cst.BaseExpression | None:
    """``self`` of ``type(self).scale`` and ``self.__class__.scale``."""
    value = func.value if isinstance(func, cst.Attribute) else None
    if isinstance(value, cst.Attribute) and value.attr.value == "__class__":
        return value.value
    if isinstance(value, cst.Call) and ctx.facts.callee(value) == "builtins.type":
        return value.args[0].value if len(value.args) == 1 else None
    return None
