"""Parts of a file: the definitions that are asked for and what they need, without the script around them.

A model is often in one file with the loop that trains it. ``migrate convert train.py:Net`` and ``migrate verify
train.py:Net`` are about the model alone.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from migrator import python_tree
from migrator.errors import UserError
from migrator.source import read_text

DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
IMPORTS = (ast.Import, ast.ImportFrom)
_SCOPES = (*DEFINITIONS, ast.Lambda)
_BY_NAME = frozenset({"globals", "locals", "vars", "eval", "exec", "__import__"})
"""What may read any name of the file."""
_MUTATING = frozenset(
    "add append appendleft clear discard extend insert pop popitem remove register reverse setdefault sort"
    " update __setitem__".split()
)
_PLAIN_CALLS = frozenset({"device", "dtype", "float", "int", "bool", "str", "tuple", "len"})
_PLAIN_DECORATORS = frozenset(
    "abstractmethod autocast classmethod enable_grad inference_mode no_grad property staticmethod".split()
)
"""Decorators that do not hand the method to anybody."""
_KEPT_CALLS = frozenset({"seed", "set_default_dtype", "set_default_tensor_type"})
"""Calls of libraries, made for what they change there, that decide what a model computes."""


def shaken(text: str, asked: Collection[str]) -> str:
    """A file with the definitions that are asked for and what those need; no line moves.

    What is left out has empty lines in its place. A statement of the file stays where it makes a name that is needed,
    or may change what such a name stands for. A file that Python cannot parse, or that looks names up in the text of
    strings, stays as it is.

    Args:
      asked: names of classes, functions or variables at the top level of the file.
    """
    try:
        file = _File(ast.parse(text), symtable.symtable(text, "<file>", "exec"))
    except (SyntaxError, ValueError, RecursionError):
        return text
    if file.by_name:
        return text
    kept = file.needed_by(asked)
    if not kept:
        return text
    kept |= {node for node in file.tree.body[:1] if ast.get_docstring(file.tree) is not None}
    used = {name for statement in kept for name in file.reads(statement)}
    return without(text, file.tree, lambda node: node in kept, used)


def defined(text: str) -> list[str] | None:
    """The classes and functions at the top level of a file, in their order; None where Python cannot parse it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return list(dict.fromkeys(node.name for node in tree.body if isinstance(node, DEFINITIONS)))


def parted(paths: Iterable[str | Path]) -> tuple[list[Path], dict[Path, str]]:
    """Paths, of which ``FILE.py:Name,Other`` means parts of a file, and the text of those parts.

    Raises:
      UserError: a part that is not in its file, or a path that is named whole and in part.
    """
    whole: list[Path] = []
    parts: dict[Path, list[str]] = {}
    for one in paths:
        place, _, given = str(one).rpartition(":")
        if not place.endswith(".py"):
            whole.append(Path(one))
            continue
        names = [name for part in given.split(",") if (name := part.strip())]
        if not names:
            raise UserError(f"{one}: no name after the colon; write {place}:NAME")
        parts.setdefault(Path(place), []).extend(names)
    for path, names in parts.items():
        above = {path.resolve(), *path.resolve().parents}
        again = next((other for other in whole if other.resolve() in above), None)
        if again is not None:
            raise UserError(f"{path}:{','.join(names)}: {again} names the file whole; name it once")
        there = defined(read_text(path)) if path.is_file() else None
        unknown = next((name for name in names if there is not None and name not in there), None)
        if unknown is not None:
            offered = ", ".join(there or ()) or "no class or function"
            raise UserError(f"{path} has no {unknown!r}; it has {offered}")
    named = [*whole, *parts]
    parts = {path: names for path, names in parts.items() if path.is_file()}
    return named, {path: shaken(read_text(path), names) for path, names in parts.items()}


def whole(text: str, lines: Collection[int]) -> list[str]:
    """The classes with a ``forward`` of a file of which no line that they need is among some.

    Args:
      lines: those on which something is left to a person, from 1.
    """
    try:
        file = _File(ast.parse(text), symtable.symtable(text, "<file>", "exec"))
    except (SyntaxError, ValueError, RecursionError):
        return []
    if file.by_name:
        return []
    imports = [node for node in file.tree.body if isinstance(node, IMPORTS)]
    absent = {name for node in imports for name in _absent(node, lines)}
    if not all(any(_is_on(node, [line]) for node in file.tree.body) for line in lines):
        return []  # it is about the file, not about a statement of it
    found = []
    for node in file.tree.body:
        if not isinstance(node, ast.ClassDef) or not file.has_forward(node):
            continue
        needed = file.needed_by([node.name])
        if not any(_is_on(one, lines) or file.reads(one) & absent for one in needed):
            found.append(node.name)
    return found


def _absent(node: ast.Import | ast.ImportFrom, lines: Collection[int]) -> Iterator[str]:
    """The names that an import binds on some lines; on its first one stands where all come from."""
    for one in node.names:
        if node.lineno in lines or set(range(one.lineno, (one.end_lineno or 0) + 1)) & set(lines):
            yield bound(one)


def _is_on(node: ast.stmt, lines: Collection[int]) -> bool:
    first, last = _span(node)
    return any(first <= line <= last for line in lines)


def without_methods(text: str, lines: Collection[int]) -> tuple[str, list[str]] | None:
    """A file without the methods that some lines are in, and those methods; no line moves.

    Methods that call them go with them. None where that is more than methods nobody else calls: where a line is in no
    method, or in one that the building or calling of a module runs.

    Args:
      lines: those on which something is left to a person, from 1.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    owners = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    methods = {
        one: f"{owner.name}.{one.name}"
        for owner in owners
        for one in owner.body
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    read = {one: _mentioned(one) for one in methods}
    outer = set(_mentioned(tree, apart=set(methods)))
    going = {m for m in methods if any(_span(m)[0] <= line <= _span(m)[1] for line in lines)}
    if not all(any(_span(m)[0] <= line <= _span(m)[1] for m in going) for line in lines):
        return None
    while True:
        names = {m.name for m in going}
        if any(_is_run(m) for m in going):
            return None
        more = {m for m in methods if m not in going and read[m] & names}
        if names & outer:
            return None
        if not more:
            break
        going |= more
    left = text.splitlines(keepends=True)
    for method in going:
        _blank(left, *_span(method))
    for owner in owners:
        first = owner.body[0]
        if all(one in going for one in owner.body):  # a class has a body
            left[_span(first)[0] - 1] = " " * first.col_offset + "pass\n"
    return "".join(left), sorted(methods[m] for m in going)


def _is_run(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method may run though nobody calls it by its name: ``forward``, ``__len__``, what a decorator takes."""
    decorators = (d.func if isinstance(d, ast.Call) else d for d in method.decorator_list)
    last = [d.attr if isinstance(d, ast.Attribute) else getattr(d, "id", "") for d in decorators]
    hidden = method.name.startswith("__") or method.name == "forward"
    return hidden or any(name not in _PLAIN_DECORATORS for name in last)


def _mentioned(node: ast.AST, apart: Collection[ast.AST] = ()) -> set[str]:
    """The attributes and texts in a node, by which a method may be called."""
    found: set[str] = set()
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, ast.Attribute):
            found.add(one.attr)
        elif isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.Constant) and isinstance(one.value, str):
            found.add(one.value)
        pending += [child for child in python_tree.children(one) if child not in apart]
    return found


@dataclass
class _File:
    """A file's statements, and which of them others need."""

    tree: ast.Module
    table: symtable.SymbolTable
    _read: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)
    _touch: dict[ast.stmt, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        scopes = [child for child in self.table.get_children() if child.get_type() != "annotation"]
        self._scopes = {(child.get_name(), child.get_lineno()): child for child in scopes}

    @cached_property
    def by_name(self) -> bool:
        """Whether something in the file reads names that are not written there."""
        every = python_tree.walk(self.tree)
        if any(isinstance(n, ast.Name) and n.id in _BY_NAME for n in every):
            return True
        modules = (n for n in every if isinstance(n, ast.Attribute) and n.attr == "modules")
        return any(isinstance(n.value, ast.Name) and n.value.id == "sys" for n in modules)

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes at the top level."""
        return {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}

    @cached_property
    def imported(self) -> set[str]:
        """The names that imports at the top level bind, and perhaps other statements, too."""
        return {
            name for node in self.tree.body if isinstance(node, IMPORTS) for name in _binds(node)
        }

    @cached_property
    def fixed(self) -> set[str]:
        """Variables that hold numbers, strings, devices and the like: no call changes them."""
        several: dict[str, list[ast.stmt]] = {}
        for node in self.tree.body:
            for name in _binds(node):
                several.setdefault(name, []).append(node)
        return {name for name, nodes in several.items() if all(map(_is_fixed, nodes))}

    def has_forward(self, node: ast.ClassDef, seen: tuple[str, ...] = ()) -> bool:
        """Whether a class, or one of the file that it derives from, has a method ``forward``; no function with a gradient does."""
        names = [
            base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            for base in node.bases
        ]
        if any("Function" in name for name in names):
            return False
        if any(isinstance(one, ast.FunctionDef) and one.name == "forward" for one in node.body):
            return True
        above = [self.classes[n] for n in names if n in self.classes and n not in seen]
        return any(self.has_forward(one, (*seen, node.name)) for one in above)

    def reads(self, node: ast.stmt) -> frozenset[str]:
        """The names of the file that a statement reads when it runs, or when what it defines is called."""
        if node not in self._read:
            self._read[node] = frozenset(self._reads(node))
        return self._read[node]

    def _reads(self, node: ast.stmt) -> Iterator[str]:
        strings = (n.value for n in python_tree.walk(node) if isinstance(n, ast.Constant))
        yield from (
            s for s in strings if isinstance(s, str) and s.isidentifier() and s in self._definitions
        )
        scope = self._scopes.get((getattr(node, "name", ""), node.lineno))
        if isinstance(node, DEFINITIONS) and scope is None:  # the line of a decorator
            lines = [d.lineno for d in node.decorator_list]
            scope = next((s for line in lines if (s := self._scopes.get((node.name, line)))), None)
        if not isinstance(node, DEFINITIONS) or scope is None:
            yield from (n.id for n in python_tree.walk(node) if isinstance(n, ast.Name))
            return
        for part in _head(node):
            yield from (n.id for n in python_tree.walk(part) if isinstance(n, ast.Name))
        yield from _free(scope)

    @cached_property
    def _definitions(self) -> set[str]:
        return {node.name for node in self.tree.body if isinstance(node, DEFINITIONS)}

    def needed_by(self, asked: Collection[str]) -> set[ast.stmt]:
        """The statements that make some names what they are; none where one of them is nowhere made."""
        body = [n for n in self.tree.body if not isinstance(n, IMPORTS) and not _is_main(n)]
        binds = {node: set(_binds(node)) for node in body}
        rebound = {name for several in binds.values() for name in several}
        if not set(asked) <= rebound:
            return set()
        needed = set(asked)
        kept: set[ast.stmt] = set()
        while True:
            changing = self._changing(needed, body)
            more = {
                node
                for node in body
                if node not in kept
                and (binds[node] & needed or self._changes(node, needed, changing))
            }
            if not more:
                return kept
            kept |= more
            for node in more:
                needed |= self.reads(node) | binds[node]
            needed -= (
                self.imported - rebound
            )  # ``checkpoint = partial(checkpoint, …)`` is needed, too

    def _changing(self, needed: set[str], body: Sequence[ast.stmt]) -> set[str]:
        """Functions and classes of the file that change what a needed name stands for when they are called."""
        found: set[str] = set()
        while True:
            fresh = {
                node.name
                for node in body
                if isinstance(node, DEFINITIONS)
                and node.name not in found
                and (
                    needed & _declared(node)
                    or self._touched(node) & (needed - self.fixed - self._definitions)
                    or (node.name not in needed and found & self.reads(node))
                )
            }
            if not fresh:
                return found
            found |= fresh

    def _changes(self, node: ast.stmt, needed: set[str], changing: set[str]) -> bool:
        """Whether a statement, when it runs, may change what a needed name stands for."""
        variables = needed - self.fixed
        if isinstance(node, ast.ClassDef):
            above = [
                self.classes[b.id]
                for b in node.bases
                if isinstance(b, ast.Name) and b.id in self.classes
            ]
            if any(one.name in needed and _counts_heirs(one) for one in above):
                return True
        if isinstance(node, DEFINITIONS):
            made = {
                n.id
                for d in node.decorator_list
                for n in python_tree.walk(d)
                if isinstance(n, ast.Name)
            }
            return bool(made & (changing | (variables - self._definitions)))
        if self._touched(node) & variables:
            return True
        names = {n.id for n in python_tree.walk(node) if isinstance(n, ast.Name)}
        if names & (changing - self.classes.keys()):
            return True
        return self._changes_libraries(node, needed)

    def _changes_libraries(self, node: ast.stmt, needed: set[str]) -> bool:
        """``torch.set_default_dtype(…)``, ``nn.Module.scale = …``, ``np.random.seed(0)``."""
        for one in _own(node):
            targets = getattr(one, "targets", None) or [getattr(one, "target", None)]
            if isinstance(one, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                if any(isinstance(t, ast.Attribute) and _root(t) in self.imported for t in targets):
                    return True
            elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
                function = one.value.func
                last = (
                    function.attr
                    if isinstance(function, ast.Attribute)
                    else getattr(function, "id", "")
                )
                if _root(function) not in self.imported or last not in _KEPT_CALLS:
                    continue
                names = {n.id for n in python_tree.walk(one) if isinstance(n, ast.Name)}
                if last != "seed" or names <= needed | self.imported:
                    return True
        return False

    def _touched(self, node: ast.stmt) -> set[str]:
        """The names whose values a statement may change: written into, handed to a function, or told to change."""
        if node not in self._touch:
            self._touch[node] = set(_touched(node))
        return self._touch[node]


def _touched(node: ast.stmt) -> Iterator[str]:
    for one in python_tree.walk(node):
        if isinstance(one, (ast.Attribute, ast.Subscript)) and not isinstance(one.ctx, ast.Load):
            yield _root(one)
        elif isinstance(one, ast.AugAssign):
            yield _root(one.target)
        elif isinstance(one, ast.Call):
            arguments = [*one.args, *(k.value for k in one.keywords)]
            yield from (a.id for a in arguments if isinstance(a, ast.Name))
            if isinstance(one.func, ast.Attribute) and one.func.attr in _MUTATING:
                yield _root(one.func)
        elif isinstance(one, ast.Expr) and isinstance(one.value, ast.Call):
            yield _root(one.value.func) if isinstance(one.value.func, ast.Attribute) else ""


def _root(node: ast.AST | None) -> str:
    """The variable that ``a.b[c].d`` begins with; nothing where it begins otherwise."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _own(node: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those in it that run with it."""
    yield node
    if not isinstance(node, DEFINITIONS):
        for one in python_tree.children(node):
            if isinstance(one, ast.stmt):
                yield from _own(one)
            elif isinstance(one, (ast.ExceptHandler, ast.match_case)):
                for inner in one.body:
                    yield from _own(inner)


def _binds(node: ast.stmt) -> Iterator[str]:
    """The names of the file that a statement binds when it runs."""
    whole = isinstance(node, (*DEFINITIONS, *IMPORTS))
    for one in [node] if whole else python_tree.below(node, _SCOPES):
        yield from python_tree.bound(one)


def _declared(node: ast.stmt) -> set[str]:
    """The names of the file that functions of a definition may bind."""
    return {n for one in python_tree.walk(node) if isinstance(one, ast.Global) for n in one.names}


def _head(node: ast.AST) -> Iterator[ast.AST]:
    """What of a definition is evaluated where it stands: decorators, bases, defaults, hints."""
    yield from getattr(node, "decorator_list", ())
    if isinstance(node, ast.ClassDef):
        yield from (*node.bases, *(k.value for k in node.keywords))
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.args
        if node.returns is not None:
            yield node.returns


def _free(scope: symtable.SymbolTable) -> Iterator[str]:
    """The names that a scope, or one inside it, takes from the file."""
    in_class = scope.get_type() == "class"
    for symbol in scope.get_symbols():
        if symbol.is_global() or (in_class and symbol.is_referenced()):
            yield symbol.get_name()
    for child in scope.get_children():
        yield from _free(child)


def _is_main(node: ast.stmt) -> bool:
    """``if __name__ == "__main__":``, which an import does not run."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    names = [one.id for one in sides if isinstance(one, ast.Name)]
    return names == ["__name__"] and isinstance(node.test.ops[0], ast.Eq)


def _is_fixed(node: ast.stmt) -> bool:
    """``n = 3``, ``device = torch.device("cuda" if … else "cpu")``: a value that nothing can change."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
        return False
    for one in python_tree.walk(node.value):
        if isinstance(one, ast.Call):
            last = (
                one.func.attr
                if isinstance(one.func, ast.Attribute)
                else getattr(one.func, "id", "")
            )
            if last not in _PLAIN_CALLS and not last.startswith("is_"):
                return False
        elif isinstance(
            one, (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
        ):
            return False
        elif isinstance(one, (ast.Subscript, ast.Lambda, ast.Starred)):
            return False
    return not isinstance(node.value, ast.Name)


def _counts_heirs(node: ast.ClassDef) -> bool:
    """Whether a class learns of those that derive from it."""
    names = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    metaclass = any(keyword.arg == "metaclass" for keyword in node.keywords)
    return metaclass or "__init_subclass__" in names


def _span(node: ast.stmt) -> tuple[int, int]:
    """The first and last line of a statement, its decorators included."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return first, node.end_lineno or node.lineno


def without(
    text: str, tree: ast.Module, keeps: Callable[[ast.stmt], bool], used: Collection[str]
) -> str:
    """A file without some of its statements and the imports that nothing in it uses; no line moves.

    Args:
      keeps: which statements stay, of those that are no imports.
      used: the names that these read.
    """
    lines = text.splitlines(keepends=True)
    stay = [node for node in tree.body if isinstance(node, IMPORTS) or keeps(node)]
    taken = {i for node in stay for i in range(_span(node)[0], _span(node)[1] + 1)}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            kept = [a for a in node.names if bound(a) in used or a.name == "*"]
            source = "." * node.level + (node.module or "")
            _import(lines, node, kept, f"from {source} import ")
        elif isinstance(node, ast.Import):
            _import(lines, node, [a for a in node.names if bound(a) in used], "import ")
        elif not isinstance(node, ast.ImportFrom) and node not in stay:
            first, last = _span(node)
            if not taken & set(range(first, last + 1)):  # ``a = 1; b = 2``
                _blank(lines, _with_comments(lines, first), last)
    return "".join(lines)


def _import(
    lines: list[str], node: ast.Import | ast.ImportFrom, kept: Sequence[ast.alias], head: str
) -> None:
    """Leave some names of an import."""
    if len(kept) < len(node.names):
        made = head + ", ".join(map(ast.unparse, kept)) if kept else ""
        alone = not lines[node.lineno - 1][: node.col_offset].strip()
        after = lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset :].strip()
        if made or not alone or after.startswith(";"):
            replace_lines(lines, node, made or "pass")
        else:
            _blank(lines, node.lineno, node.end_lineno or node.lineno)


def _with_comments(lines: Sequence[str], first: int) -> int:
    """The first line of a statement or of the comments right above it, which are about it; those that begin a file stay."""
    above = first
    while above > 1 and lines[above - 2].startswith("#"):
        above -= 1
    return above if any(line.strip() and line[0] != "#" for line in lines[: above - 1]) else first


def _blank(lines: list[str], first: int, last: int) -> None:
    for i in range(first - 1, last):
        lines[i] = "\n"


def replace_lines(lines: list[str], node: ast.stmt, made: str) -> None:
    """Write a statement anew on its first line; those that it went on over become empty."""
    last = node.end_lineno or node.lineno
    end = lines[last - 1][node.end_col_offset :]
    more = ["\n"] * (last - node.lineno)
    first = lines[node.lineno - 1][: node.col_offset] + made + end
    lines[node.lineno - 1 : last] = [first, *more]


def bound(alias: ast.alias) -> str:
    """The name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]
