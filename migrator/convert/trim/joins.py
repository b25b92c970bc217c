"""Helpers that become one: a base and its only subclass, what only hands on and what it hands to, two steps in a row."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from migrator.convert.trim.fold import is_pure
from migrator.convert.trim.known import is_own
from migrator.convert.trim.nodes import (
    bound_by,
    is_docstring,
    parameters,
    substituted,
)
from migrator.convert.trim.text import has_comment, stands_apart
from migrator.convert.trim.uses import bound
from migrator.convert.trim.walking import (
    changed,
    exchanged,
    loads,
    names_of,
    stored,
    text,
    with_arguments,
)
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


def join_methods(work: Work) -> bool:
    """``return self._forward(input, self.weight[...])`` or ``self.update(mean, var)`` with nobody else calling it: the steps stand here."""
    for owner in work.classes():
        methods = {m.name: m for m in owner.body if isinstance(m, ast.FunctionDef)}
        for one in methods.values():
            for at in _steps_of(one.body):
                call = at.value if isinstance(at, ast.Return | ast.Expr) else None
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                    continue
                other = methods.get(call.func.attr)
                if other is None or other is one or not is_own(call.func):
                    continue
                if isinstance(at, ast.Return) and at is not one.body[-1]:
                    continue
                sites = work.method_sites(owner, other)
                if sites is None or len(sites) != 1 or sites[0].call is not call:
                    continue
                handed = _handed_to if isinstance(at, ast.Return) else _in_between
                steps = handed(one, call, other)
                if steps is None:
                    continue
                new = changed(one, body=_with_steps(one.body, at, steps))
                body = [new if m is one else m for m in owner.body if m is not other]
                work.replace(owner, changed(owner, body=body))
                return True
    return False


def _steps_of(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of the branches and loops in it."""
    for one in body:
        yield one
        if isinstance(one, ast.If | ast.For):
            yield from _steps_of([*one.body, *one.orelse])


def _with_steps(body: list[ast.stmt], at: ast.stmt, steps: list[ast.stmt]) -> list[ast.stmt]:
    """A block with steps in the place of a statement."""
    made: list[ast.stmt] = []
    for one in body:
        if one is at:
            made += steps
        elif isinstance(one, ast.If | ast.For) and any(s is at for s in _steps_of([one])):
            inner = {k: _with_steps(getattr(one, k), at, steps) for k in ("body", "orelse")}
            made.append(changed(one, **inner))
        else:
            made.append(one)
    return made


def _in_between(
    one: ast.FunctionDef, call: ast.Call, other: ast.FunctionDef
) -> list[ast.stmt] | None:
    """The steps of a method that gives nothing, among those of another; None where names would get in each other's way."""
    if any(isinstance(n, ast.Return) for s in other.body for n in walk(s)) or not _may_join(
        one, other
    ):
        return None
    params = parameters(other)[1:]
    given = bound(call, params)
    steps = [s for s in other.body if not is_docstring(s)]
    bound_there = {n for s in steps for n in stored(s)}
    if set(given) != set(params) or bound_there & set(params):
        return None
    same = {p for p, v in given.items() if isinstance(v, ast.Name) and v.id == p}
    if (bound_there | (set(params) - same)) & names_of(one.body):
        return None
    named = [
        ast.Assign([ast.Name(p, ast.Store())], given[p], lineno=0) for p in params if p not in same
    ]
    return [*named, *steps]


def _may_join(one: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    """Whether two methods have neither decorators and open arguments nor scopes that might see names of each other."""
    args = other.args
    if one.decorator_list or other.decorator_list or args.vararg or args.kwarg or args.kwonlyargs:
        return False
    return not any(isinstance(n, _SCOPES) for s in (*one.body, *other.body) for n in walk(s))


def _handed_to(
    one: ast.FunctionDef, call: ast.Call, other: ast.FunctionDef
) -> list[ast.stmt] | None:
    """The steps of a method as the end of another that calls it; None where names would get in each other's way."""
    if not _may_join(one, other):
        return None
    repeated = [n for s in other.body for n in walk(s) if isinstance(n, _REPEATED)]
    params = parameters(other)[1:]
    given = bound(call, params)
    if set(given) != set(params):
        return None
    steps = [s for s in other.body if not is_docstring(s)]
    put: dict[str, ast.expr] = {}
    for param, value in given.items():
        if isinstance(value, ast.Name) and value.id == param:
            continue
        anew = names_of([value]) & {n for s in steps for n in stored(s)}
        if sum(loads(s).get(param, 0) for s in steps) != 1 or anew or not is_pure(value):
            return None
        if any(param in stored(s) for s in steps) or param in names_of(repeated):
            return None
        put[param] = value
    return [_put_in(s, put) for s in steps]


_SCOPES = (ast.FunctionDef, ast.Lambda)
_REPEATED = (ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)


def _put_in(step: ast.stmt, put: dict[str, ast.expr]) -> ast.stmt:
    """A step with expressions in the place of names."""
    reads = {
        id(n): put[n.id]
        for n in walk(step)
        if isinstance(n, ast.Name) and n.id in put and isinstance(n.ctx, ast.Load)
    }
    made: ast.stmt = exchanged(step, reads)
    return made


def merge_steps(node: ast.stmt) -> ast.stmt:
    """``x = a`` before ``x = x + b`` is ``x = a + b``, where both are short: in definitions that are no longer as written.

    Only where ``x`` is what the second reads first, so that nothing is computed in another order."""
    if isinstance(node, ast.ClassDef):
        body = [merge_steps(member) for member in node.body]
        same = all(a is b for a, b in zip(body, node.body, strict=True))
        return node if same else changed(node, body=body)
    if not isinstance(node, ast.FunctionDef) or not getattr(node, "changed", False):
        return node
    body = _merged(node.body, node.col_offset + 4)
    return node if body is node.body else changed(node, body=body)


_WIDE = 88
"""Longer lines than this are not made of two."""
_WIDEST = 100
"""As long as a line may be."""


def _merged(body: list[ast.stmt], indent: int) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for at, one in enumerate(body):
        before = made[-1] if made else None
        name, value = _named(before), getattr(one, "value", None)
        if name and _named(one) in (name, None) and isinstance(one, ast.Assign | ast.Return):
            again = isinstance(one, ast.Assign) and names_of(one.targets) != {name}
            if again and any(name in loads(later) for later in body[at + 1 :]):
                made.append(one)  # ``y = x``, after which x is asked for again
                continue
            again = value is not None and loads(value).get(name) == 1 and _first(value) == name
            if (
                again
                and value is not None
                and isinstance(before, ast.Assign)
                and _may_merge(before, one)
            ):
                found = exchanged(one, {id(_leaf(value)): before.value})
                found.lineno = before.lineno  # what stands above the first stands above both
                if indent + len(text(found)) <= _WIDE:
                    made[-1] = found
                    continue
        elif isinstance(before, ast.Assign) and _may_merge(before, one):
            spread = _spread(before, one, body)
            if spread is not None and indent + len(text(spread)) <= _WIDEST:
                made[-1] = spread
                continue
        made.append(one)
    return body if len(made) == len(body) else made


def _spread(before: ast.Assign, one: ast.stmt, body: list[ast.stmt]) -> ast.stmt | None:
    """``f(a, **{"b": c})`` as ``f(a, b=c)``, of two steps; None where it is something else."""
    target, value = before.targets[0], before.value
    call = one.value if isinstance(one, ast.Expr | ast.Return | ast.Assign) else None
    if not isinstance(call, ast.Call) or not isinstance(value, ast.Dict):
        return None
    if len(before.targets) != 1 or not isinstance(target, ast.Name):
        return None
    keys = [str(k.value) for k in value.keys if isinstance(k, ast.Constant)]
    plain = all(isinstance(v, ast.Name | ast.Constant) for v in value.values)
    if (
        not plain
        or len(keys) < len(value.keys)
        or sum(loads(s).get(target.id, 0) for s in body) != 1
    ):
        return None
    opened = [k for k in call.keywords if k.arg is None]
    if len(opened) != 1 or not isinstance(opened[0].value, ast.Name):
        return None
    if opened[0].value.id != target.id or {k.arg for k in call.keywords} & set(keys):
        return None
    given = [ast.keyword(key, v) for key, v in zip(keys, value.values, strict=True)]
    keywords = [*given, *(k for k in call.keywords if k.arg is not None)]
    found: ast.stmt = changed(one, value=changed(call, keywords=keywords))
    found.lineno = before.lineno
    return found


def _may_merge(before: ast.stmt, one: ast.stmt) -> bool:
    """Whether nothing is said between two steps, or at the end of their lines."""
    return not (stands_apart(one) or has_comment(before) or has_comment(one))


def _named(node: ast.stmt | None) -> str | None:
    """The one name that a statement binds to an expression, which may stand in an expression."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    (target,) = node.targets
    plain = isinstance(node.value, ast.BinOp | ast.Call | ast.Subscript | ast.Attribute)
    return target.id if isinstance(target, ast.Name) and plain else None


def _leaf(node: ast.expr) -> ast.expr:
    """What an expression computes first."""
    while True:
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        elif isinstance(node, ast.ListComp):
            node = node.generators[0].iter
        else:
            return node


def _first(node: ast.expr) -> str | None:
    leaf = _leaf(node)
    return leaf.id if isinstance(leaf, ast.Name) else None


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
