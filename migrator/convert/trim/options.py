"""Parameters of helpers that are the same in every call, with the branches that they decide."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from migrator.convert.trim import fold, walking
from migrator.convert.trim.known import (
    MARKS,
    PRESENT,
    SEQUENCE,
    Known,
    is_constant,
    is_own,
    is_plain,
    is_repeated,
    origins,
)
from migrator.convert.trim.nodes import (
    assignments,
    defaults_of,
    fewer_parameters,
    is_read_inside,
    keyword_only,
    one_liners,
    parameters,
    reads,
    reads_unbound,
    substituted,
    values_of,
)
from migrator.convert.trim.own import may_leave_out
from migrator.convert.trim.uses import bound, without
from migrator.convert.trim.walking import changed, copied, rebuilt

if TYPE_CHECKING:
    from migrator.convert.trim.trim import Work

MODES = frozenset({"deterministic", "use_running_average", "rngs"})
"""Attributes that ``train()``, ``eval()`` and ``nnx`` itself read and set."""


def drop_options(work: Work) -> bool:
    """Parameters that are the same in every call, with the branches that they decide."""
    made = False
    for name, method in [(o.name if o else "", f.name) for o, f, _ in work.callables()]:
        for owner, function, sites in work.callables(name or method, method):
            if _take_options(work, owner, function, sites):
                made = True
                work.uses = work.now()
    return made


def _take_options(
    work: Work, owner: ast.ClassDef | None, function: ast.FunctionDef, sites: list[Any]
) -> bool:
    key = (function, owner, *(site.call for site in sites))
    if work.tried.get(id(function)) == key:
        return False  # nothing of it has changed since it was last tried
    if not sites:
        return False
    within = set(map(id, walking.calls(function)))
    if any(id(site.call) in within for site in sites):
        return False
    made = _fewer(work, owner, function, sites)
    if made is None and _closed(function, sites, parameters(function, owner)) is not function:
        made = function, set()
    if made is None:
        work.tried[id(function)] = key
        return False
    new, gone = made
    positional = parameters(function, owner)
    calls = {
        id(site.call): without(site.call, positional, gone)
        for site in sites
        if gone & bound(site.call, positional).keys()
    }
    agreed = gone & _agreed(work, owner, function, sites) if owner is not None else set()
    for site in sites if agreed else ():
        if site.own:
            work.left_out.setdefault(site.call.func.id, set()).update(agreed)
    work.put(owner, function, _closed(new, sites, positional))
    if calls:
        work.body = [substituted(one, calls) for one in work.body]
    return True


def _closed(function: ast.FunctionDef, sites: list[Any], positional: list[str]) -> ast.FunctionDef:
    """A function without the ``**options`` that nobody gives."""
    kwarg = function.args.kwarg
    named = {*positional, *keyword_only(function)}
    if kwarg is None or any(
        site.open or any(k.arg not in named for k in site.call.keywords) for site in sites
    ):
        return function
    body: list[ast.stmt] = []
    for place, one in enumerate(function.body):
        body.append(_without_open(one, kwarg.arg))
        if kwarg.arg in walking.stored(one):
            body += function.body[place + 1 :]
            break
    if reads_unbound(body, kwarg.arg):
        return function
    made = copied(function.args)
    made.kwarg = None
    closed: ast.FunctionDef = changed(function, args=made, body=body)
    return closed


def _without_open(node: Any, name: str) -> Any:
    """``{"a": b, **options}`` → ``{"a": b}``, and ``f(a, **options)`` → ``f(a)``."""
    made = rebuilt(node, lambda one: _without_open(one, name))
    if isinstance(made, ast.Dict):
        pairs = zip(made.keys, made.values, strict=True)
        kept = [(k, v) for k, v in pairs if not (k is None and _is_named(v, name))]
        if len(kept) < len(made.keys):
            return changed(made, keys=[k for k, _ in kept], values=[v for _, v in kept])
    if isinstance(made, ast.Call):
        keywords = [k for k in made.keywords if not (k.arg is None and _is_named(k.value, name))]
        if len(keywords) < len(made.keywords):
            return changed(made, keywords=keywords)
    return made


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _may_be_given(
    work: Work, positional: list[str], arguments: dict[str, ast.expr], param: str
) -> bool:
    """Whether a call of ``partial(f, …)`` may give a parameter that it leaves open.

    By place it gives the first one alone where the second is named already.
    """
    named = len(positional) > 1 and positional[1] in arguments
    return not named or param in positional[:1] or bool({param, "**"} & work.uses.keywords)


def _agreed(
    work: Work, owner: ast.ClassDef, function: ast.FunctionDef, sites: list[Any]
) -> set[str]:
    """Features that every layer is built without, each time in so many words: ``bias=False``."""
    if function.name != "__init__" or any(site.open for site in sites):
        return set()
    positional = parameters(function, owner)
    return {
        param
        for param, default in defaults_of(function).items()
        if isinstance(default, ast.Constant)
        and default.value is True
        and all(_is_without(bound(s.call, positional).get(param)) for s in sites)
        and all(may_leave_out(s.call, param) for s in sites if s.own)
        and any(s.own for s in sites)
    }


def _fewer(
    work: Work, owner: ast.ClassDef | None, function: ast.FunctionDef, sites: list[Any]
) -> tuple[ast.FunctionDef, set[str]] | None:
    """A function with fewer parameters, and which have gone; None when nothing changes."""
    positional = parameters(function, owner)
    defaults = defaults_of(function)
    given: dict[str, list[ast.expr | None]] = {
        p: [] for p in [*positional, *keyword_only(function)]
    }
    passed: set[str] = set()
    for site in sites:
        arguments = bound(site.call, positional)
        for param, found in given.items():
            later = site.open and _may_be_given(work, positional, arguments, param)
            found.append(arguments.get(param, None if later else defaults.get(param)))
            if site.open or (site.own and param in arguments):
                passed.add(param)
    values = {p: v for p, found in given.items() if (v := values_of(found)) is not None}
    values = {p: v for p, v in values.items() if not is_read_inside(function, p)}
    if owner is not None:
        passed -= _agreed(work, owner, function, sites)
    for param in passed & values.keys() & defaults.keys():  # which stays an option
        with_default = values_of([*given[param], defaults[param]])
        values = {**values, param: with_default} if with_default else _but(values, param)
    single = {
        p: v[0] for p, v in values.items() if len(v) == 1 and p not in passed and v[0] not in MARKS
    }
    stated = {
        p
        for p in single
        if defaults.get(p) not in given[p] and not any(getattr(a, "origin", "") for a in given[p])
    }
    present = {} if owner is None or function.name == "__init__" else present_in(work, owner)
    while True:
        known = Known(single, values, {}, present, one_liners(work.body))
        body = fold.statements(function.body, known)
        lasting = _lasting(work, owner, function, body)
        numbers = origins(lasting, _handed(work, lasting)) - stated
        bad = numbers | {p for p in single if reads_unbound(body, p)}
        silent = {
            p
            for p in passed & values.keys()
            if not any(reads(one, p) for one in body)
            and any(reads(one, p) for one in function.body)
        }
        if not bad & single.keys() and not silent:
            break
        single = {p: v for p, v in single.items() if p not in bad}
        values = {p: v for p, v in values.items() if p not in silent}
    unread = {
        p
        for p, found in given.items()
        if p not in passed
        and not any(reads(one, p) for one in body)
        and all(a is None or fold.is_pure(a) for a in found)
    }
    gone = (single.keys() | unread) - {"rngs"}
    if body is function.body and not gone:
        return None
    return changed(
        function, args=fewer_parameters(function.args, gone), body=body or [ast.Pass()]
    ), gone


def present_in(work: Work, owner: ast.ClassDef) -> dict[str, tuple[Any, ...]]:
    """Attributes that hold an array, or one of a few values, in every instance."""
    every = work.attributes_of(owner)
    found: dict[str, tuple[Any, ...]] = {}
    for name in work.uses.family(owner.name):
        member = work.definition(name)
        options = _option_values(work, member)
        for function, _, attribute, value in assignments(member):
            if function is None or every.stores(attribute) != 1:
                continue
            if attribute in work.uses.written:
                continue
            if attribute in MODES or work.uses.dynamic:
                continue
            if fold.is_present(value):
                found[attribute] = (PRESENT,)
            elif isinstance(value, ast.Constant) and value.value is None:
                found[attribute] = (None,)
            elif is_repeated(value) or (isinstance(value, ast.Tuple) and is_plain(value)):
                found[attribute] = (SEQUENCE,)
            elif isinstance(value, ast.Name) and value.id in options:
                found[attribute] = options[value.id]
    return found


def _option_values(work: Work, owner: ast.ClassDef) -> dict[str, tuple[Any, ...]]:
    """The values that the parameters of a class's constructor have, where all are constants."""
    for one, function, sites in work.callables(owner.name, "__init__"):
        if one is owner and function.name == "__init__" and sites:
            positional, defaults = parameters(function, owner), defaults_of(function)
            found = {}
            for param in [*positional, *keyword_only(function)]:
                given = [bound(s.call, positional).get(param, defaults.get(param)) for s in sites]
                values = values_of(given)
                stated = any(
                    s.open or (s.own and param in bound(s.call, positional)) for s in sites
                )
                if (
                    values is not None
                    and not stated
                    and param not in [n for s in function.body for n in walking.stored(s)]
                ):
                    found[param] = values
            return found
    return {}


def _lasting(
    work: Work, owner: ast.ClassDef | None, function: ast.FunctionDef, body: list[ast.stmt]
) -> list[ast.AST]:
    """The code whose numbers a reader would meet: not those of attributes that fall away in turn."""
    if owner is None or function.name != "__init__":
        return list(body)
    found: list[ast.AST] = []
    for statement in body:
        for target, value in fold.pairs(statement) or ():
            if not isinstance(target, ast.Attribute) or not _vanishes(work, owner, target, value):
                found.append(value)
        if fold.pairs(statement) is None:
            found.append(statement)
    return found


def _handed(work: Work, code: list[ast.AST]) -> set[int]:
    """Arguments of helpers that only helpers call: they take them in in turn."""
    uses = work.uses
    inner = {
        name
        for name, sites in uses.calls.items()
        if name in uses.names - uses.values and not any(site.own for site in sites)
    }
    return {
        id(argument)
        for top in code
        for node in walking.calls(top)
        if isinstance(node.func, ast.Name) and node.func.id in inner
        for argument in (*node.args, *(k.value for k in node.keywords))
    }


def _vanishes(work: Work, owner: ast.ClassDef, target: ast.Attribute, value: ast.expr) -> bool:
    """Whether an attribute of a constant is one that nothing would read."""
    name = target.attr
    if not is_own(target) or not is_constant(value):
        return False
    every = work.attributes_of(owner)
    if every.stores(name) != 1:
        return False
    if name in work.uses.mentioned or work.uses.dynamic or every.foreign(name) or name in MODES:
        return False
    family = [work.definition(one) for one in work.uses.family(owner.name)]
    bodies = [work.put_in(s, name, value) for member in family for s in member.body]
    return bool(every.loads(name)) and f"self.{name}" not in origins(bodies)


def _but(values: dict[str, tuple[Any, ...]], name: str) -> dict[str, tuple[Any, ...]]:
    return {n: v for n, v in values.items() if n != name}


def _is_without(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
