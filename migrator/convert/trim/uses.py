"""What a file asks of the helpers it carries."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from migrator.convert.trim.walking import walk

Definition = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Site:
    """A call of a helper; ``own``: it stands in the file's own code, which stays as it is."""

    call: ast.Call
    own: bool


@dataclass
class Uses:
    """Who calls what, and which helpers are used in ways that do not tell how they are called.

    Attributes:
      calls: helper → its calls; ``Class.method`` for calls through ``self`` and ``super()``.
      values: helpers that are handed on, subclassed by the file, or called with starred arguments.
      mentioned: names of attributes and strings in the file's own code.
      methods: how often each attribute is read in the helpers, and how often as ``self.name(…)``.
      dynamic: attributes are asked for, or layers built, by names and types that only a run knows.
      by_name: helpers that ask ``self`` for attributes by names that they compute.
    """

    names: frozenset[str]
    calls: dict[str, list[Site]] = field(default_factory=dict)
    values: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    methods: Counter[str] = field(default_factory=Counter)
    bases: dict[str, list[str]] = field(default_factory=dict)
    read: Counter[str] = field(default_factory=Counter)
    dynamic: bool = False
    written: set[str] = field(default_factory=set)
    """Attributes that the file's own code assigns."""
    by_name: set[str] = field(default_factory=set)
    _class: str = ""

    @classmethod
    def together(cls, parts: Sequence[Uses]) -> Uses:
        """What several pieces of code use."""
        found = cls(parts[0].names)
        for part in parts:
            for name, sites in part.calls.items():
                found.calls.setdefault(name, []).extend(sites)
            found.values |= part.values
            found.mentioned |= part.mentioned
            found.written |= part.written
            found.by_name |= part.by_name
            found.methods.update(part.methods)
            found.read.update(part.read)
            found.bases.update(part.bases)
            found.dynamic = found.dynamic or part.dynamic
        return found

    def family(self, name: str) -> set[str]:
        """A class with the helpers it inherits from and those that inherit from it."""
        found, queue = {name}, [name]
        while queue:
            one = queue.pop()
            near = [b for b in self.bases.get(one, ()) if b in self.names]
            near += [c for c, bases in self.bases.items() if one in bases]
            queue += [n for n in near if n not in found]
            found.update(near)
        return found

    def add(self, node: ast.AST, own: bool) -> None:
        """Take in what a piece of code uses."""
        if isinstance(node, ast.Call):
            self._call(node, own)
        elif isinstance(node, ast.ClassDef):
            self._definition(node, own)
        elif isinstance(node, ast.Name):
            if node.id in self.names:
                self.values.add(node.id)
                self.read[node.id] += 1
        elif isinstance(node, ast.arg):
            self._annotation(node.annotation)
        elif isinstance(node, ast.AnnAssign):
            self._annotation(node.annotation)
            self._each((node.target, node.value), own)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._annotation(node.returns)
            self._each((*node.decorator_list, node.args, *node.body), own)
        elif isinstance(node, ast.Compare | ast.Attribute) and any(map(_asks_type, _parts(node))):
            for part in _parts(node):  # type(layer) == Linear, type(layer).__name__: none is built
                self._each([part.args[0]] if _asks_type(part) else [part], own)  # type: ignore[attr-defined]
        else:
            if isinstance(node, ast.Attribute):
                self.methods[node.attr] += 1
                if own and node.attr == "__class__":
                    self.values |= self.names
                if own:
                    self.mentioned.add(node.attr)
                    if not isinstance(node.ctx, ast.Load):
                        self.written.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and own:
                self.mentioned.add(node.value)
                self.values |= {node.value} & self.names
            self._each(ast.iter_child_nodes(node), own)

    def _each(self, nodes: Iterable[ast.AST | None], own: bool) -> None:
        for node in nodes:
            if node is not None:
                self.add(node, own)

    def _annotation(self, node: ast.AST | None) -> None:
        """A helper in an annotation is only named."""
        for one in walk(node) if node is not None else ():
            if isinstance(one, ast.Name) and one.id in self.names:
                self.read[one.id] += 1

    def _definition(self, node: ast.ClassDef, own: bool) -> None:
        for base in node.bases:
            if own:
                self.add(base, own)
            elif isinstance(base, ast.Name):
                self.bases.setdefault(node.name, []).append(base.id)
                self.read[base.id] += 1
        outer, self._class = self._class, "" if own else node.name
        self._each((*node.decorator_list, *node.keywords, *node.body), own)
        self._class = outer

    def _call(self, node: ast.Call, own: bool) -> None:
        func = node.func
        given = [*node.args, *node.keywords]
        if isinstance(func, ast.Name) and func.id in self.names:
            self._site(func.id, node, own)
            self.read[func.id] += 1
        elif isinstance(func, ast.Name) and func.id == "isinstance" and len(node.args) == 2:
            self._annotation(node.args[1])
            given = [node.args[0]]
        elif isinstance(func, ast.Name) and func.id in (
            "getattr",
            "setattr",
            "hasattr",
            "delattr",
            "vars",
        ):
            named = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
            on_self = (
                bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id == "self"
            )
            if not named and not own and on_self:
                self.by_name.add(self._class)
            elif not named:
                self.dynamic = True
            if own and named and func.id != "getattr":
                self.written.add(str(node.args[1].value))  # type: ignore[attr-defined]
        elif isinstance(func, ast.Attribute) and self._class and not own:
            self._own_call(node, func)
        else:
            by_text = isinstance(func, ast.Name) and func.id in ("globals", "eval", "exec")
            if own and (by_text or _asks_type(node)):
                self.values |= (
                    self.names
                )  # globals()[name](…) or type(layer)(…) may build any of them
            self.add(func, own)
        self._each(given, own)

    def _own_call(self, node: ast.Call, func: ast.Attribute) -> None:
        """``self.method(…)`` and ``super().method(…)`` within a helper."""
        value = func.value
        is_self = isinstance(value, ast.Name) and value.id == "self"
        is_super = (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "super"
        )
        self.methods[func.attr] += 1
        if is_self or is_super:
            self._site(f"{self._class}.{func.attr}", node, False)
            self.methods[f"self.{func.attr}"] += 1
        else:
            self._each([value], False)

    def _site(self, name: str, node: ast.Call, own: bool) -> None:
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            self.values.add(name)
        self.calls.setdefault(name, []).append(Site(node, own))


def _asks_type(node: ast.AST) -> bool:
    """``type(layer)``"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "type"
        and len(node.args) == 1
    )


def _parts(node: ast.Compare | ast.Attribute) -> list[ast.expr]:
    return [node.value] if isinstance(node, ast.Attribute) else [node.left, *node.comparators]


def bound(call: ast.Call, params: list[str]) -> dict[str, ast.expr]:
    """The arguments of a call by parameter."""
    found = dict(zip(params, call.args, strict=False))
    found.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    return found


def without(call: ast.Call, params: list[str], gone: set[str]) -> ast.Call:
    """A call without the arguments of some parameters."""
    args = [a for i, a in enumerate(call.args) if i >= len(params) or params[i] not in gone]
    keywords = [k for k in call.keywords if k.arg not in gone]
    return ast.Call(call.func, args, keywords)
