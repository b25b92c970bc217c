"""What one file binds and imports, read from its statements alone: enough to find who defines a name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from migrator.infer.emptied import emptied, replaced
from migrator.infer.facts import asks_for_modules, hands_makers, keeps_makers
from migrator.infer.given_out import returned, stored
from migrator.infer.handing import handed
from migrator.infer.listed import items, listed, made
from migrator.infer.registered import assigned, bases, registered
from migrator.python_tree import walk
from rules.torch_names import table

_WORD = re.compile(r"[^\W\d]\w*")
_UNCALLED = re.compile(r"[^\W\d]\w*+(?!\()")
_BY_NAME = re.compile(r"""getattr\(\s*([^\W\d]\w*)\s*,\s*["']([^\W\d]\w*)["']""")
_OTHER_LINES = ("import ", "from ", "class ", "def ", "#", "@")
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Import:
    """``from module import name``; without a name ``import module``. ``level`` counts the leading dots."""

    module: str
    level: int = 0
    name: str | None = None


@dataclass
class Scan:
    """The outline of a file.

    Attributes:
      bindings: top-level name → what it may be bound to; None stands for a definition or value of its own.
      fallbacks: those of them that are bound anew only where their import fails.
      stars: modules of ``from module import *``.
      exports: what ``__all__`` lists, None where there is none or it is computed.
      inner: imports inside functions and classes.
      words: identifiers of the file that an import binds or that a star import may bring.
      paths: dotted paths read from a name that an import binds (``layers.DropPath``).
      traverses: the file asks for the children of modules.
      hands_makers: the file hands classes of modules around, or says that it takes what makes one.
      keeps_makers: the file puts classes into tables by decorators, or looks them up by dotted names.
      emptied: names of attributes that the file may take something out of, or give to objects of other files.
      handed: what works in place and is handed over (``migrator.infer.handing``).
      values: identifiers that stand somewhere without a call bracket: handed on, not only called.
      derived: pairs of the last name of a class's base and the class's own name, where that may be a layer of torch's.
      dicts: names of attributes that the file makes a ModuleDict (``migrator.infer.listed``).
      sequentials: those that it may make a Sequential.
      listed: names of attributes that the file may go over.
      items: those of other objects than ``self`` that it goes over as lists.
      returned: last names of what the file calls for what its functions return (``migrator.infer.given_out``).
      stored: those of what it keeps in attributes and items.
      registered: pairs of a class and what it registers as a parameter or buffer (``migrator.infer.registered``).
      bases: pairs of a class and the last name of a base.
      assigned: names of attributes that the file gives values or returns.
      literals: names of the top that are a number or a text written out and nothing else, and its type.
    """

    bindings: dict[str, list[Import | None]] = field(default_factory=dict)
    fallbacks: list[str] = field(default_factory=list)
    stars: list[Import] = field(default_factory=list)
    exports: list[str] | None = None
    inner: list[tuple[str, Import]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    literals: dict[str, str] = field(default_factory=dict)
    traverses: bool = False
    hands_makers: bool = False
    keeps_makers: bool = False
    emptied: list[str] = field(default_factory=list)
    handed: list[list[str]] = field(default_factory=list)
    derived: list[list[str]] = field(default_factory=list)
    dicts: list[str] = field(default_factory=list)
    sequentials: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    registered: list[list[str]] = field(default_factory=list)
    bases: list[list[str]] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Scan:
        """What ``to_dict`` gave."""
        made = cls(**data)
        made.bindings = {
            name: [None if one is None else Import(**one) for one in several]
            for name, several in data["bindings"].items()
        }
        made.stars = [Import(**one) for one in data["stars"]]
        made.inner = [(name, Import(**one)) for name, one in data["inner"]]
        return made

    def imports(self) -> Iterator[tuple[str, Import]]:
        """Every import with the name it binds, those of functions included; stars left out."""
        for name, several in self.bindings.items():
            for one in several:
                if one is not None:
                    yield name, one
        yield from self.inner


def scan(text: str) -> Scan:
    """The outline of a file; an empty one where Python cannot parse it (the conversion will say so)."""
    found = Scan()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return found
    _statements(tree.body, found, True)
    found.fallbacks = sorted(_fallbacks(tree.body, found))
    bound = {name for name, _ in found.imports()}
    defined = {name for name, several in found.bindings.items() if None in several}
    words = set(_WORD.findall(text))
    found.words = sorted(words if found.stars else words & bound)
    found.values = sorted(_values(text, words & (bound | defined | set(found.words))))
    found.paths = sorted(set(_paths(text, bound)))
    found.literals = _literals(tree, found)
    found.handed = [list(pair) for pair in handed(tree)]
    nodes = walk(tree)
    found.derived = _derived(nodes)
    found.emptied = sorted(emptied(nodes) | replaced(tree, nodes))
    found.dicts = sorted(made(nodes, "ModuleDict"))
    found.sequentials = sorted(made(nodes, "")) if "Sequential" in text else []
    found.listed = sorted(listed(nodes))
    found.items = sorted(items(nodes))
    found.returned = sorted(returned(nodes))
    found.stored = sorted(stored(nodes))
    found.registered = registered(nodes, text)
    found.bases = bases(nodes)
    found.assigned = assigned(nodes)
    found.traverses = asks_for_modules(text)
    found.hands_makers = hands_makers(text)
    found.keeps_makers = keeps_makers(text)
    return found


def _statements(body: Iterable[ast.stmt], found: Scan, top: bool) -> None:
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            _imported(node, found, top)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if top:
                found.bindings.setdefault(node.name, []).append(None)
            _statements(node.body, found, False)
        else:
            if top:
                _bound(node, found)
            for name in _BLOCKS:
                _statements(getattr(node, name, ()), found, top)
            for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                _statements(part.body, found, top)


def _derived(nodes: Iterable[ast.AST]) -> list[list[str]]:
    """``["Linear", "LoRALinear"]`` of ``class LoRALinear(nn.Linear)``."""
    found = {
        (base.attr if isinstance(base, ast.Attribute) else base.id, node.name)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if isinstance(base, (ast.Attribute, ast.Name))
    }
    return sorted([base, name] for base, name in found if base in _layers())


@cache
def _layers() -> frozenset[str]:
    """Layers of torch that a class may derive from, without what every class of modules derives from."""
    return frozenset(name.partition(".")[0] for name in table()["layer"]) - {"Module"}


def _literals(tree: ast.Module, found: Scan) -> dict[str, str]:
    """``__version__ = "1.0"`` at the top, of names that nothing in the file binds a second time."""
    made = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
                if type(value.value) in (str, int, float, bool):
                    made[target.id] = type(value.value).__name__
    if not made:
        return made
    bound = Counter[str]()
    for part in ast.walk(tree):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            bound[part.id] += 1
        elif isinstance(part, ast.Global):
            bound.update(part.names * 2)
        elif _binds_anything(part):
            return {}
    return {n: kind for n, kind in made.items() if bound[n] == 1 and found.bindings[n] == [None]}


def _binds_anything(node: ast.AST) -> bool:
    """``globals()[name] = …``, ``globals().update(…)``, ``exec(text)``."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _called(node.value) in ("globals", "vars")
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return _called(node.func.value) in ("globals", "vars") and node.func.attr != "get"
    return isinstance(node.func, ast.Name) and node.func.id == "exec"


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _fallbacks(body: Iterable[ast.stmt], found: Scan) -> Iterator[str]:
    """The names that nothing binds but an import within ``try`` and what handles that it fails."""
    for node in body:
        if not isinstance(node, ast.Try):
            continue
        apart = [Scan(), Scan()]
        _statements(node.body, apart[0], True)
        for handler in node.handlers:
            _statements(handler.body, apart[1], True)
        tried, instead = (one.bindings for one in apart)
        for name in tried.keys() & instead.keys():
            if found.bindings[name] == tried[name] + instead[name] and None not in tried[name]:
                yield name


def _imported(node: ast.Import | ast.ImportFrom, found: Scan, top: bool) -> None:
    for alias in node.names:
        if isinstance(node, ast.Import):
            made = Import(alias.name if alias.asname else alias.name.partition(".")[0])
            name = alias.asname or alias.name.partition(".")[0]
        else:
            made = Import(node.module or "", node.level, alias.name)
            name = alias.asname or alias.name
        if made.name == "*":
            found.stars.append(Import(made.module, made.level))
        elif top:
            found.bindings.setdefault(name, []).append(made)
        else:
            found.inner.append((name, made))


def _bound(node: ast.stmt, found: Scan) -> None:
    """Names that a statement at the top binds, and what it says about ``__all__``."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.For)):
        targets = [node.target]
    elif isinstance(node, ast.With):
        targets = [item.optional_vars for item in node.items if item.optional_vars is not None]
    for target in targets:
        for part in ast.walk(target):
            if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Store):
                continue
            if part.id == "__all__":
                _exports(node, found)
            if None not in found.bindings.setdefault(part.id, []):
                found.bindings[part.id].append(None)


def _exports(node: ast.stmt, found: Scan) -> None:
    value = getattr(node, "value", None)
    try:
        listed = [str(one) for one in ast.literal_eval(value)] if value is not None else []
    except (ValueError, TypeError):
        found.exports = None
        return
    if isinstance(node, ast.AugAssign):
        found.exports = None if found.exports is None else [*found.exports, *listed]
    else:
        found.exports = listed


def _values(text: str, names: set[str]) -> set[str]:
    """Names that are followed by no call bracket somewhere below the imports."""
    if not names:
        return set()
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(_OTHER_LINES)]
    return names.intersection(_UNCALLED.findall("\n".join(lines)))


def _paths(text: str, bound: set[str]) -> Iterator[str]:
    for match in re.finditer(r"(?<![\w.])([^\W\d]\w*)((?:\.[^\W\d]\w*)+)", text):
        if match[1] in bound:
            yield match[0]
    if "getattr(" in text:  # ``getattr(layers, "DropPath")`` is read as ``layers.DropPath``
        for match in _BY_NAME.finditer(text):
            if match[1] in bound:
                yield f"{match[1]}.{match[2]}"
