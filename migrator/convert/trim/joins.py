"""Helpers that become one: a base and its only subclass, a function and the one that only hands on to it."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from migrator.convert.trim.nodes import (
    bound_by,
    is_docstring,
    parameters,
    substituted,
    with_arguments,
)
from migrator.convert.trim.uses import bound
from migrator.convert.trim.walking import changed, names_of, text
from migrator.python_tree import walk

if TYPE_CHECKING:
    from migrator.convert.trim.trim import Work


def join_bases(work: Work) -> bool:
    """A base and its only subclass are one class."""
    for one in list(work.classes()):
        names = [b.id for b in one.bases if isinstance(b, ast.Name)]
        if len(names) != 1 or names[0] not in work.uses.names or work.uses.read(names[0]) != 1:
            continue
        base = work.definition(names[0])
        if "super" in names_of(one.body):
            continue
        members = {name for s in one.body for name in bound_by(s)}
        theirs = [s for s in base.body if not is_docstring(s)]
        if any(
            bound_by(s) & members and not (isinstance(s, ast.AnnAssign) and s.value is None)
            for s in theirs
        ):
            continue
        kept = [s for s in theirs if not bound_by(s) & members]
        work.replace(one, changed(one, bases=base.bases, body=[*one.body, *kept]))
        work.replace(base, None)
        return True
    return False


def join_forwarders(work: Work) -> bool:
    """``def f(x): return g(x)`` with nobody else calling ``g``: f does it itself, also at the end of other steps."""
    for one in work.body:
        if not isinstance(one, ast.FunctionDef) or one.decorator_list:
            continue
        *before, last = one.body
        call = last.value if isinstance(last, ast.Return) else None
        if any(isinstance(n, ast.FunctionDef | ast.Lambda) for s in before for n in walk(s)):
            continue  # which might see names that the other one binds
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        name = call.func.id
        if name not in work.uses.names or name in work.uses.values or work.uses.read(name) != 1:
            continue
        other = work.definition(name)
        if not isinstance(other, ast.FunctionDef) or other.decorator_list or other is one:
            continue
        params = parameters(other)
        given = bound(call, params)
        if set(given) != set(params) or other.args.vararg or other.args.kwarg:
            continue
        if any(not isinstance(v, ast.Name) or v.id != p for p, v in given.items()):
            continue
        steps = [s for s in other.body if not is_docstring(s)]
        work.replace(one, changed(one, body=[*before, *steps]))
        work.replace(other, None)
        return True
    return False


def inline(work: Work) -> bool:
    """``def mean(x): return jnp.mean(x)`` of the helpers stands where it is called."""
    for one in work.body:
        if not isinstance(one, ast.FunctionDef) or one.name in work.uses.values:
            continue
        steps = [s for s in one.body if not is_docstring(s)]
        sites = work.uses.calls.get(one.name, [])
        value = steps[0].value if len(steps) == 1 and isinstance(steps[0], ast.Return) else None
        if value is None or not sites or any(site.own for site in sites) or one.decorator_list:
            continue
        params, args = parameters(one), one.args
        if args.vararg or args.kwarg or args.kwonlyargs or len(text(value)) > 40:
            continue
        given = [bound(site.call, params) for site in sites]
        counts = Counter(n.id for n in walk(value) if isinstance(n, ast.Name))
        if any(
            set(found) != set(params)
            or any(
                counts[p] > 1 and not isinstance(a, ast.Name | ast.Constant)
                for p, a in found.items()
            )
            for found in given
        ):
            continue
        calls = {
            id(site.call): with_arguments(value, found)
            for site, found in zip(sites, given, strict=True)
        }
        work.replace(one, None)
        work.body = [substituted(other, calls) for other in work.body]
        return True
    return False
