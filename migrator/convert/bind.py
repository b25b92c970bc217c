"""Binds a user's call to a definition's signature and chooses among overloads."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from migrator.convert.values import Code, Lit, Open, Seq, Star, Value, code, kind_of, lift
from migrator.infer import kinds as k
from migrator.infer.signatures import fits, spelled
from rules.definitions import Param, Rule


@dataclass(frozen=True)
class Argument:
    """One argument of a call: its keyword (None, a name, "*" or "**") and its abstract value."""

    keyword: str | None
    value: Value


@cache
def default_value(param: Param) -> Value | None:
    """The abstract value of a parameter's default, None when it has none."""
    if param.default is None:
        return None
    try:
        return lift(ast.literal_eval(param.default))
    except (ValueError, Open):
        return Code(param.default)


def bind(rule: Rule, args: Sequence[Argument]) -> dict[str, Value] | None:
    """Parameter → value for a call, or None when the signature does not take it.

    A definition's ``rngs`` and the defaults of missing parameters are filled in; Open when a ``*args`` or
    ``**kwargs`` of unknown length meets named parameters.
    """
    bound: dict[str, Value] = {}
    positional = [p for p in rule.params if p.mode == "positional"]
    vararg = next((p for p in rule.params if p.mode == "*"), None)
    kwarg = next((p for p in rule.params if p.mode == "**"), None)
    rest: list[Value] = []
    extra: dict[str, Value] = {}
    queue = list(positional)
    for argument in args:
        if argument.keyword == "**":
            raise Open
        if argument.keyword == "*":
            if queue or vararg is None:
                raise Open
            rest.append(Star(argument.value))
        elif argument.keyword is None:
            if queue:
                bound[queue.pop(0).name] = argument.value
            elif vararg is not None:
                rest.append(argument.value)
            else:
                return None
        else:
            name = argument.keyword
            known = rule.by_name
            if name not in known or known[name].mode in ("*", "**"):
                name = spelled(name, known)
            if name not in known and vararg is not None and vararg.name == argument.keyword:
                name = vararg.name
            if vararg is not None and name == vararg.name:
                rest.append(argument.value)
                continue
            if name not in known:
                if kwarg is None or name in extra:
                    return None
                extra[name] = argument.value
                continue
            if name in bound:
                return None
            bound[name] = argument.value
            queue = [p for p in queue if p.name != name]
    if vararg is not None:
        bound[vararg.name] = Seq(tuple(rest))
    if kwarg is not None:
        keys: list[ast.expr | None] = [ast.Constant(name) for name in extra]
        bound[kwarg.name] = Code(ast.Dict(keys, [code(value) for value in extra.values()]))
    for param in rule.params:
        if param.name in bound:
            continue
        if param.name == "rngs":
            bound["rngs"] = Code(ast.Name("__rngs__"), k.Other("flax.nnx.Rngs"))
            continue
        default = default_value(param)
        if default is None:
            return None
        bound[param.name] = default
    return bound


@dataclass(frozen=True)
class Choice:
    """The definition a call reaches, with its bound arguments (None where binding is left to run time)."""

    rule: Rule | None
    bound: dict[str, Value] | None = None
    problem: str = ""


def choose(name: str, rules: Sequence[Rule], args: Sequence[Argument]) -> Choice:
    """Pick the overload a call means; a Choice with a problem when none fits or it cannot be told."""
    maybe: list[tuple[Rule, dict[str, Value] | None]] = []
    for rule in rules:
        try:
            bound = bind(rule, args)
        except Open:
            maybe.append((rule, None))
            continue
        if bound is None:
            continue
        answer: bool | None = True
        for param in rule.params:
            value = bound[param.name]
            if param.annotation and param.mode in ("positional", "keyword"):
                if isinstance(value, Lit) and value.name is None and param.default is not None:
                    continue
                fit = fits(param.annotation, kind_of(value))
                if fit is False:
                    answer = False
                    break
                if fit is None:
                    answer = None
            elif param.annotation and param.mode == "*" and isinstance(value, Seq):
                each = {
                    fits(param.annotation, kind_of(one))
                    for one in value.items
                    if not isinstance(one, Star)
                }
                if False in each:
                    answer = False
                    break
                answer = None if None in each else answer
        if answer is True and not maybe:
            return Choice(rule, bound)
        if answer is not False:
            maybe.append((rule, bound))
            if answer is True:
                break
    if len(maybe) > 1:
        # a star of unknown length fits a definition that takes one; others could only take it by luck
        maybe = [m for m in maybe if m[1] is not None] or maybe
    general = [rule for rule in rules if rule.general]
    if len(maybe) > 1 and general:
        return Choice(general[0], None)
    maybe = [m for m in maybe if not m[0].general] or maybe
    if len(maybe) == 1:
        return Choice(*maybe[0])
    if maybe:
        return Choice(
            None, problem=f"{name} has several meanings and the argument kinds are not known"
        )
    return Choice(None, problem=f"{name} is called with arguments its definition does not take")
