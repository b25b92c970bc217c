"""Takes from helpers what a file does not use of them, round by round, until nothing more falls away."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from migrator.convert.trim import fold, walking
from migrator.convert.trim.joins import (
    inline,
    join_bases,
    join_forwarders,
    join_methods,
    merge_steps,
)
from migrator.convert.trim.known import (
    PRESENT,
    SEQUENCE,
    Known,
    is_constant,
    is_own,
    is_repeated,
    origins,
)
from migrator.convert.trim.nodes import (
    Attributes,
    Everywhere,
    assignments,
    attributes_of,
    bound_by,
    completed_by,
    constants_of,
    defaults_of,
    fewer_parameters,
    has_method,
    in_method,
    is_attribute,
    is_read_inside,
    keyword_only,
    one_liners,
    parameters,
    reads,
    reads_unbound,
    substituted,
    without_unread,
)
from migrator.convert.trim.text import definition
from migrator.convert.trim.uses import (
    Definition,
    Together,
    Uses,
    bound,
    used_by_file,
    used_by_helper,
    without,
)
from migrator.convert.trim.walking import changed, names, parsed

_ROUNDS = 12
_MODES = frozenset({"deterministic", "use_running_average", "rngs"})
"""Attributes that ``train()``, ``eval()`` and ``nnx`` itself read and set."""
_OF_MODULES = frozenset(
    {"train", "eval", "set_attributes", "set_mode", "sow", "perturb", "iter_modules"}
)


def trimmed(own: ast.Module, helpers: Sequence[str]) -> str:
    """The helpers with only what a file uses of them.

    Args:
      own: the file without them.
      helpers: definitions, those that others use first.
    """
    whole = [text for text in helpers if text.startswith(_WHOLE)]
    helpers = [text for text in helpers if text not in whole]
    return "\n\n".join([*whole, *_trimmed(own, helpers)])


_WHOLE = "class NotConverted:"
"""The helper whose methods are called by Python alone."""


def _trimmed(own: ast.Module, helpers: Sequence[str]) -> Sequence[str]:
    body = [one for text in helpers for one in parsed(text)]
    if not any(isinstance(one, Definition) for one in body):
        return helpers
    work = Work(own, body)
    for _ in range(_ROUNDS):
        if not work.round():
            break
    return [definition(merge_steps(one)) for one in work.body] if work.touched else helpers


class Work:
    """The helpers as they become smaller."""

    def __init__(self, own: ast.Module, body: list[ast.stmt]) -> None:
        self.body = body
        self.touched = False
        self._names = frozenset(one.name for one in body if isinstance(one, Definition))
        self._own, self._own_names = used_by_file(own, self._names)
        self._attributes: tuple[list[ast.stmt], dict[str, Everywhere]] = body, {}
        self._defined: tuple[list[ast.stmt], dict[str, Any]] = [], {}
        self._tried: dict[int, tuple[Any, ...]] = {}
        self._parts: dict[int, tuple[ast.stmt, Uses]] = {}
        self._idle: dict[int, list[ast.stmt]] = {}
        self._put_in: dict[tuple[int, str, int], tuple[ast.stmt, ast.stmt, ast.expr]] = {}
        self._used = body, Together([self._own, *map(self._part, body)])
        self.uses = self._used[1]

    def _uses(self) -> Together:
        if self._used[0] is not self.body:
            self._used = self.body, Together([self._own, *map(self._part, self.body)])
        return self._used[1]

    def _part(self, node: ast.stmt) -> Uses:
        """What one helper uses; a changed one is another node."""
        if id(node) not in self._parts:
            self._parts[id(node)] = node, used_by_helper(node, self._names)
        return self._parts[id(node)][1]

    def round(self) -> bool:
        """One try of each way; whether any took something away."""
        joining = tuple(
            partial(step, self) for step in (join_bases, join_forwarders, join_methods, inline)
        )
        steps: tuple[Callable[[], bool], ...] = (
            self._drop_unread,
            self._empty_unbuilt,
            self._drop_options,
            self._drop_attributes,
            self._fold_present,
            self._drop_methods,
            self._drop_locals,
            *joining,
        )
        alone = (self._drop_attributes, *joining)
        any_made = False
        for place, step in enumerate(steps):
            while self._idle.get(place) is not self.body:
                self.uses = self._uses()
                if not step():
                    self._idle[place] = self.body  # nothing to be done for it until that changes
                    break
                any_made = self.touched = True
                if step not in alone:
                    break
        return any_made

    # --- finding one's way ---------------------------------------------------------------------------------------

    def definition(self, name: str) -> Any:
        if self._defined[0] is not self.body:
            named = [one for one in reversed(self.body) if isinstance(one, Definition)]
            self._defined = self.body, {one.name: one for one in named}
        return self._defined[1][name]

    def replace(self, old: ast.AST, new: ast.AST | None) -> None:
        self.body = [
            new if one is old else one  # type: ignore[misc]
            for one in self.body
            if one is not old or new is not None
        ]

    def _attributes_of(self, owner: ast.ClassDef) -> Everywhere:
        if self._attributes[0] is not self.body:
            self._attributes = self.body, {}
        known = self._attributes[1]
        if owner.name not in known:
            family = self.uses.family(owner.name)
            near, others = list[Attributes](), list[Attributes]()
            for one in self.body:
                is_near = isinstance(one, ast.ClassDef) and one.name in family
                (near if is_near else others).append(attributes_of(one))
            known[owner.name] = Everywhere(near, others)
        return known[owner.name]

    def _is_fixed(self, name: str) -> bool:
        """Whether it is not known how a helper, or one of its family, is called."""
        return bool(self.uses.family(name) & self.uses.values)

    def classes(self) -> Iterator[ast.ClassDef]:
        """Classes whose every use is seen, and whose base is one of them or plain ``nnx.Module``."""
        for one in list(self.body):
            if isinstance(one, ast.ClassDef) and not self._is_fixed(one.name):
                family = [self.definition(name) for name in self.uses.family(one.name)]
                bases = {walking.text(b) for member in family for b in member.bases}
                by_name = any(member.name in self.uses.by_name for member in family)
                if bases - self.uses.names <= {"nnx.Module"} and not by_name:
                    yield one

    def _callables(
        self, of: str = "", called: str = ""
    ) -> Iterator[tuple[ast.ClassDef | None, ast.FunctionDef, list[Any]]]:
        """Functions and methods all of whose calls are seen, with these calls."""
        calls = self.uses.calls
        for one in [one for one in self.body if not of or getattr(one, "name", "") == of]:
            if isinstance(one, ast.FunctionDef) and one.name not in self.uses.values:
                yield None, one, calls.get(one.name, [])
            elif isinstance(one, ast.ClassDef) and not self._is_fixed(one.name):
                for method in [m for m in one.body if isinstance(m, ast.FunctionDef)]:
                    if called and method.name != called:
                        continue
                    sites = self.method_sites(one, method)
                    if sites is not None and not method.decorator_list:
                        yield one, method, sites

    def method_sites(self, owner: ast.ClassDef, method: ast.FunctionDef) -> list[Any] | None:
        """The calls of a method; None when others may call it."""
        uses, name = self.uses, method.name
        family = {n: self.definition(n) for n in uses.family(owner.name)}
        keys = [f"{member}.{name}" for member in family]
        if any(key in uses.values for key in keys):
            return None
        found = [site for key in keys for site in uses.calls.get(key, [])]
        definitions = sum(has_method(member, name) for member in family.values())
        if name == "__init__":
            if definitions > 1:
                return None
            return found + [site for member in family for site in uses.calls.get(member, [])]
        if name.startswith("__") or definitions > 1 or name in uses.mentioned:
            return None
        everywhere = sum(
            has_method(one, name) for one in self.body if isinstance(one, ast.ClassDef)
        )
        if everywhere > 1 or uses.methods(name) != uses.methods(f"self.{name}"):
            return None
        return found

    # --- whole definitions -----------------------------------------------------------------------------------------

    def _drop_unread(self) -> bool:
        """Definitions that nothing reads any more."""
        read, kept = set(self._own_names), set[int]()
        while True:
            more = [
                one
                for one in self.body
                if id(one) not in kept and (bound_by(one) & read or completed_by(one) & read)
            ]
            if not more:
                break
            for one in more:
                kept.add(id(one))
                read |= names(one)
        if len(kept) == len(self.body):
            return False
        self.body = [one for one in self.body if id(one) in kept]
        return True

    def _empty_unbuilt(self) -> bool:
        """A class that is only asked for, in ``isinstance`` or an annotation."""
        made = False
        for one in list(self.classes()):
            if one.name in self.uses.calls or len(self.uses.family(one.name)) > 1:
                continue
            if any(key.startswith(f"{one.name}.") for key in self.uses.calls) and len(one.body) < 2:
                continue
            if len(one.body) == 1 or not self.uses.read(one.name):
                continue
            words = ast.Expr(ast.Constant("Only asked for: nothing here builds one."))
            words.changed = True  # type: ignore[attr-defined]
            self.replace(one, changed(one, body=[words]))
            made = True
        return made

    # --- options -----------------------------------------------------------------------------------------------------

    def _drop_options(self) -> bool:
        """Parameters that are the same in every call, with the branches that they decide."""
        made = False
        for name, method in [(o.name if o else "", f.name) for o, f, _ in self._callables()]:
            for owner, function, sites in self._callables(name or method, method):
                if self._take_options(owner, function, sites):
                    made = True
                    self.uses = self._uses()
        return made

    def _take_options(
        self, owner: ast.ClassDef | None, function: ast.FunctionDef, sites: list[Any]
    ) -> bool:
        key = (function, owner, *(site.call for site in sites))
        if self._tried.get(id(function)) == key:
            return False  # nothing of it has changed since it was last tried
        if not sites:
            return False
        within = set(map(id, walking.calls(function)))
        if any(id(site.call) in within for site in sites):
            return False
        made = self._fewer(owner, function, sites)
        if made is None:
            self._tried[id(function)] = key
            return False
        new, gone = made
        positional = parameters(function, owner)
        calls = {
            id(site.call): without(site.call, positional, gone)
            for site in sites
            if gone & bound(site.call, positional).keys()
        }
        self._put(owner, function, new)
        if calls:
            self.body = [substituted(one, calls) for one in self.body]
        return True

    def _put(self, owner: ast.ClassDef | None, old: ast.AST, new: ast.AST) -> None:
        if owner is None:
            self.replace(old, new)
        else:
            body = [new if one is old else one for one in owner.body]
            self.replace(owner, changed(owner, body=body))

    def _fewer(
        self, owner: ast.ClassDef | None, function: ast.FunctionDef, sites: list[Any]
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
                found.append(arguments.get(param, defaults.get(param)))
                if site.own and param in arguments:
                    passed.add(param)
        values = {p: v for p, found in given.items() if (v := constants_of(found)) is not None}
        values = {p: v for p, v in values.items() if not is_read_inside(function, p)}
        for param in passed & values.keys() & defaults.keys():  # which stays an option
            with_default = constants_of([*given[param], defaults[param]])
            values = {**values, param: with_default} if with_default else _but(values, param)
        single = {p: v[0] for p, v in values.items() if len(v) == 1 and p not in passed}
        stated = {
            p
            for p in single
            if defaults.get(p) not in given[p]
            and not any(getattr(a, "origin", "") for a in given[p])
        }
        present = {} if owner is None or function.name == "__init__" else self._present(owner)
        while True:
            known = Known(single, values, {}, present, one_liners(self.body))
            body = fold.statements(function.body, known)
            lasting = self._lasting(owner, function, body)
            numbers = origins(lasting, self._handed(lasting)) - stated
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

    def _present(self, owner: ast.ClassDef) -> dict[str, tuple[Any, ...]]:
        """Attributes that hold an array, or one of a few values, in every instance."""
        every = self._attributes_of(owner)
        found: dict[str, tuple[Any, ...]] = {}
        for name in self.uses.family(owner.name):
            member = self.definition(name)
            options = self._option_values(member)
            for function, _, attribute, value in assignments(member):
                if function is None or every.stores(attribute) != 1:
                    continue
                if attribute in self.uses.written:
                    continue
                if attribute in _MODES or self.uses.dynamic:
                    continue
                if fold.is_present(value):
                    found[attribute] = (PRESENT,)
                elif is_repeated(value):
                    found[attribute] = (SEQUENCE,)
                elif isinstance(value, ast.Name) and value.id in options:
                    found[attribute] = options[value.id]
        return found

    def _option_values(self, owner: ast.ClassDef) -> dict[str, tuple[Any, ...]]:
        """The values that the parameters of a class's constructor have, where all are constants."""
        for one, function, sites in self._callables(owner.name, "__init__"):
            if one is owner and function.name == "__init__" and sites:
                positional, defaults = parameters(function, owner), defaults_of(function)
                found = {}
                for param in [*positional, *keyword_only(function)]:
                    given = [
                        bound(s.call, positional).get(param, defaults.get(param)) for s in sites
                    ]
                    values = constants_of(given)
                    stated = any(s.own and param in bound(s.call, positional) for s in sites)
                    if (
                        values is not None
                        and not stated
                        and param not in [n for s in function.body for n in walking.stored(s)]
                    ):
                        found[param] = values
                return found
        return {}

    def _lasting(
        self, owner: ast.ClassDef | None, function: ast.FunctionDef, body: list[ast.stmt]
    ) -> list[ast.AST]:
        """The code whose numbers a reader would meet: not those of attributes that fall away in turn."""
        if owner is None or function.name != "__init__":
            return list(body)
        found: list[ast.AST] = []
        for statement in body:
            for target, value in fold.pairs(statement) or ():
                if not isinstance(target, ast.Attribute) or not self._vanishes(
                    owner, target, value
                ):
                    found.append(value)
            if fold.pairs(statement) is None:
                found.append(statement)
        return found

    def _handed(self, code: list[ast.AST]) -> set[int]:
        """Arguments of helpers that only helpers call: they take them in in turn."""
        uses = self.uses
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

    def _fold_present(self) -> bool:
        """Tests whether an attribute is None that never is."""
        made = False
        for one in list(self.classes()):
            known = Known(attribute_values=self._present(one))
            body = [
                s
                if isinstance(s, ast.FunctionDef) and s.name == "__init__"
                else in_method(s, known)
                for s in one.body
            ]
            if any(a is not b for a, b in zip(body, one.body, strict=True)):
                self.replace(one, changed(one, body=body))
                made = True
        return made

    def _vanishes(self, owner: ast.ClassDef, target: ast.Attribute, value: ast.expr) -> bool:
        """Whether an attribute of a constant is one that nothing would read."""
        name = target.attr
        if not is_own(target) or not is_constant(value):
            return False
        every = self._attributes_of(owner)
        if every.stores(name) != 1:
            return False
        if (
            name in self.uses.mentioned
            or self.uses.dynamic
            or every.foreign(name)
            or name in _MODES
        ):
            return False
        family = [self.definition(one) for one in self.uses.family(owner.name)]
        bodies = [self._with(s, name, value) for member in family for s in member.body]
        return bool(every.loads(name)) and f"self.{name}" not in origins(bodies)

    def _drop_locals(self) -> bool:
        """Names that a function computes and nothing reads, and functions in it that nothing calls."""
        made = False
        for old in list(self.body):
            new = without_unread(old)
            if new is not old:
                self.replace(old, new)
                made = True
        return made

    # --- attributes --------------------------------------------------------------------------------------------------

    def _drop_attributes(self) -> bool:
        """Attributes that are the same in every instance, or that nothing reads."""
        if self.uses.dynamic:
            return False
        for one in list(self.classes()):
            family = [self.definition(name) for name in self.uses.family(one.name)]
            every = self._attributes_of(one)
            for member in one.body:
                if isinstance(member, ast.AnnAssign) and member.value is None:
                    name = walking.text(member.target)
                    if not every.loads(name) and name not in self.uses.mentioned:
                        self._forget(one, None, member, name)
                        return True
            for function, statement, name, value in assignments(one):
                if name in _MODES or name in self.uses.mentioned or every.stores(name) != 1:
                    continue
                if not every.loads(name) and (fold.is_pure(value) or function is None):
                    self._forget(one, function, statement, name)
                    return True
                plain = function is None and isinstance(value, ast.Constant)
                if not (plain or is_constant(value)):
                    continue
                if every.foreign(name) or not every.loads(name):
                    continue
                if self._fold_attribute(family, name, value, plain):
                    return True
        return False

    def _fold_attribute(
        self, family: list[ast.ClassDef], name: str, value: ast.expr, plain: bool
    ) -> bool:
        """Put an attribute's value where it is read."""
        made: dict[ast.ClassDef, ast.ClassDef] = {}
        for member in family:
            body = [self._with(s, name, value) for s in member.body]
            if f"self.{name}" in origins(body) and not plain:
                return False
            if any(a is not b for a, b in zip(body, member.body, strict=True)):
                made[member] = changed(member, body=body)
        for old, new in made.items():
            self.replace(old, new)
        return bool(made)

    def _with(self, node: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
        """A method with an attribute's value put in; first it is asked whether that would do, then it is done."""
        key = id(node), name, id(value)
        if key not in self._put_in:
            made = in_method(node, Known(attributes={name: value}))
            self._put_in[key] = made, node, value  # which live as long as their ids are asked for
        return self._put_in[key][0]

    def _forget(
        self, owner: ast.ClassDef, function: ast.FunctionDef | None, statement: ast.stmt, name: str
    ) -> None:
        """Leave out the assignment of an attribute."""
        if function is None:
            body = [s for s in owner.body if s is not statement]
            self.replace(owner, changed(owner, body=body or [ast.Pass()]))
            return
        assert isinstance(statement, ast.Assign)
        kept = [(t, v) for t, v in fold.pairs(statement) or () if not is_attribute(t, name)]
        body = [
            new
            for s in function.body
            for new in (fold.assigned(statement, kept) if s is statement else [s])
        ]
        self._put(owner, function, changed(function, body=body or [ast.Pass()]))

    def _drop_methods(self) -> bool:
        """Methods that nothing calls."""
        if self.uses.dynamic:
            return False
        made = False
        for one in list(self.classes()):
            kept = [s for s in one.body if not self._is_idle(s)]
            if len(kept) < len(one.body):
                self.replace(one, changed(one, body=kept))
                made = True
        return made

    def _is_idle(self, node: ast.stmt) -> bool:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("__"):
            return False
        uses = self.uses
        return (
            node.name not in _OF_MODULES
            and node.name not in uses.mentioned
            and not uses.methods(node.name)
            and not any(key.endswith(f".{node.name}") for key in uses.calls)
        )


def _but(values: dict[str, tuple[Any, ...]], name: str) -> dict[str, tuple[Any, ...]]:
    return {n: v for n, v in values.items() if n != name}
