"""Takes from helpers what a file does not use of them, round by round, until nothing more falls away."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    Known,
    is_constant,
    origins,
)
from migrator.convert.trim.nodes import (
    Attributes,
    Everywhere,
    assignments,
    attributes_of,
    bound_by,
    completed_by,
    has_method,
    in_method,
    is_attribute,
    is_docstring,
    without_unread,
)
from migrator.convert.trim.options import MODES, drop_options, present_in
from migrator.convert.trim.own import edited, unbuilt_of
from migrator.convert.trim.text import definition
from migrator.convert.trim.uses import (
    Definition,
    Together,
    Uses,
    used_by_file,
    used_by_helper,
)
from migrator.convert.trim.walking import changed, names, parsed

_ROUNDS = 12
_OF_MODULES = frozenset(
    {"train", "eval", "set_attributes", "set_mode", "sow", "perturb", "iter_modules"}
)


@dataclass(frozen=True)
class Trimmed:
    """Helpers with only what a file uses of them.

    Attributes:
      helpers: their text.
      options: helper → arguments that the file's calls are to leave out: all stated the same.
      unbuilt: classes that the file's ``isinstance`` need not ask for any more.
    """

    helpers: str
    options: Mapping[str, Collection[str]]
    unbuilt: Collection[str]

    def of_own(self, text: str) -> str:
        """The file's own text as it goes with these helpers."""
        return edited(text, self.options, self.unbuilt) if self.options or self.unbuilt else text


def trimmed(own: ast.Module, helpers: Sequence[str], text: str = "") -> Trimmed:
    """The helpers with only what a file uses of them.

    Args:
      own: the file without them.
      helpers: definitions, those that others use first.
      text: the file's text.
    """
    whole = [one for one in helpers if one.startswith(_WHOLE)]
    made, options, unbuilt = _trimmed(own, [one for one in helpers if one not in whole], text)
    return Trimmed("\n\n".join([*whole, *made]), options, unbuilt)


_WHOLE = "class NotConverted:"
"""The helper whose methods are called by Python alone."""


def _trimmed(
    own: ast.Module, helpers: Sequence[str], text: str
) -> tuple[Sequence[str], dict[str, set[str]], set[str]]:
    body = [one for helper in helpers for one in parsed(helper)]
    if not any(isinstance(one, Definition) for one in body):
        return helpers, {}, set()
    work = Work(own, body)
    for _ in range(_ROUNDS):
        if not work.round():
            break
    if not work.touched:
        return helpers, {}, set()
    empty = {name for name in work.emptied if not any(name in names(o) for o in work.body)}
    idle = work.uses.names - work.uses.calls.keys()
    unbuilt = unbuilt_of(own, text, empty, idle) if empty else empty
    kept = [
        _said(one, work.left_out.get(getattr(one, "name", ""), set()))
        for one in work.body
        if getattr(one, "name", "") not in unbuilt
    ]
    return [definition(merge_steps(one)) for one in kept], work.left_out, unbuilt


class Work:
    """The helpers as they become smaller."""

    def __init__(self, own: ast.Module, body: list[ast.stmt]) -> None:
        self.body = body
        self.touched = False
        self.emptied: set[str] = set()
        """Classes that are only asked for."""
        self.left_out: dict[str, set[str]] = {}
        """Helper → arguments that the file's own calls state, all the same, and are to leave out."""
        self._names = frozenset(one.name for one in body if isinstance(one, Definition))
        self._own, self._own_names = used_by_file(own, self._names)
        self._attributes: tuple[list[ast.stmt], dict[str, Everywhere]] = body, {}
        self._defined: tuple[list[ast.stmt], dict[str, Any]] = [], {}
        self.tried: dict[int, tuple[Any, ...]] = {}
        self._parts: dict[int, tuple[ast.stmt, Uses]] = {}
        self._idle: dict[int, list[ast.stmt]] = {}
        self._put_in: dict[tuple[int, str, int], tuple[ast.stmt, ast.stmt, ast.expr]] = {}
        self._used = body, Together([self._own, *map(self._part, body)])
        self.uses = self._used[1]

    def now(self) -> Together:
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
            partial(drop_options, self),
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
                self.uses = self.now()
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

    def put(self, owner: ast.ClassDef | None, old: ast.AST, new: ast.AST) -> None:
        if owner is None:
            self.replace(old, new)
        else:
            body = [new if one is old else one for one in owner.body]
            self.replace(owner, changed(owner, body=body))

    def attributes_of(self, owner: ast.ClassDef) -> Everywhere:
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

    def callables(
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
            if one.name in self.uses.calls or self.uses.has_subclass(one.name):
                continue
            if any(key.startswith(f"{one.name}.") for key in self.uses.calls) and len(one.body) < 2:
                continue
            if len(one.body) == 1 or not self.uses.read(one.name):
                continue
            words = ast.Expr(ast.Constant("Only asked for: nothing here builds one."))
            words.changed = True  # type: ignore[attr-defined]
            base = ast.Attribute(ast.Name("nnx", ast.Load()), "Module", ast.Load())
            self.replace(one, changed(one, bases=[base], body=[words]))
            self.emptied.add(one.name)
            made = True
        return made

    def _fold_present(self) -> bool:
        """Tests whether an attribute is None that never is."""
        made = False
        for one in list(self.classes()):
            known = Known(attribute_values=present_in(self, one))
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
            every = self.attributes_of(one)
            for member in one.body:
                if isinstance(member, ast.AnnAssign) and member.value is None:
                    name = walking.text(member.target)
                    if not every.loads(name) and name not in self.uses.mentioned:
                        self._forget(one, None, member, name)
                        return True
            for function, statement, name, value in assignments(one):
                if name in MODES or name in self.uses.mentioned or every.stores(name) != 1:
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
            body = [self.put_in(s, name, value) for s in member.body]
            if f"self.{name}" in origins(body) and not plain:
                return False
            if any(a is not b for a, b in zip(body, member.body, strict=True)):
                made[member] = changed(member, body=body)
        for old, new in made.items():
            self.replace(old, new)
        return bool(made)

    def put_in(self, node: ast.stmt, name: str, value: ast.expr) -> ast.stmt:
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
        self.put(owner, function, changed(function, body=body or [ast.Pass()]))

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


def _said(node: ast.stmt, options: Collection[str]) -> ast.stmt:
    """A class whose docstring says what its layers are built without."""
    if not options or not isinstance(node, ast.ClassDef) or not is_docstring(node.body[0]):
        return node
    text = str(node.body[0].value.value).removesuffix(".")  # type: ignore[attr-defined]
    what = " and ".join(f"``{option}=False``" for option in sorted(options))
    words = ast.Expr(ast.Constant(f"{text}, here with {what}."))
    words.changed = True  # type: ignore[attr-defined]
    made: ast.stmt = changed(node, body=[words, *node.body[1:]])
    return made
