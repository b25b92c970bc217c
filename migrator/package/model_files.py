"""``--follow transformers``: the files of models that a project imports, over what stands in for the rest.

``from transformers import BertModel`` is found in ``models/bert/modeling_bert.py`` of the installed library. Of such a
file only the definitions are taken that are asked for and what they need; what it imports of the library's own base is
what stands in for it, and its configurations stay the library's.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from migrator import python_tree
from migrator.package.follow import StandIn
from migrator.package.scan import scan
from migrator.package.table import Symbol
from migrator.pretrained import READERS
from migrator.shaken import DEFINITIONS, IMPORTS, replace_lines, without
from migrator.source import read_text

_DEFINED = re.compile(r"^(?:class|def) (\w+)", re.M)


@dataclass
class ModelFiles(StandIn):
    """What stands in for a library, and the files of its models.

    Attributes:
      installed: where the library is.
      asked: file of a model → the names that are asked of it.
    """

    installed: Path = field(kw_only=True)
    asked: dict[str, set[str]] = field(default_factory=dict)

    @cached_property
    def models(self) -> dict[str, str]:
        """Class or function → the file of a model that defines it; the first where there are several."""
        found: dict[str, str] = {}
        for path in sorted((self.installed / "models").glob("*/modeling_*.py")):
            module = self._module(path)
            for name in _DEFINED.findall(path.read_text(encoding="utf-8", errors="replace")):
                found.setdefault(name, module)
        return found

    def _module(self, path: Path) -> str:
        return ".".join((self.name, *path.relative_to(self.installed).with_suffix("").parts))

    def has(self, name: str) -> bool:
        """See the base; or a definition in the file of a model."""
        return super().has(name) or self._home(name) is not None

    def _home(self, name: str) -> str | None:
        """The file of a model that defines what a dotted name says."""
        module, _, last = name.rpartition(".")
        if self._is_model(module):
            self._read(module)
            symbol = self.table.resolve(module, last)
            own = symbol is not None and symbol.kind == "own" and symbol.module == module
            return module if own else None
        if module != self.name and not f"{module}.".startswith(f"{self.name}.models."):
            return None
        home = self.models.get(last)
        return home if home is not None and home.startswith(f"{module}.") else None

    def _is_model(self, module: str) -> bool:
        parts = module.split(".")
        if len(parts) != 4 or parts[:2] != [self.name, "models"]:
            return False
        return parts[3].startswith("modeling_") and self._path(module).is_file()

    def _path(self, module: str) -> Path:
        return self.installed.joinpath(*module.split(".")[1:]).with_suffix(".py")

    def _read(self, module: str) -> None:
        """Make the outline of a file of a model known."""
        if module in self.paths:
            return
        self.paths[module] = self._path(module)
        scans = dict(self.table.scans)
        scans[module] = scan(read_text(self.paths[module]))
        parts = module.split(".")
        packages = {".".join(parts[:i]) for i in range(1, len(parts))}
        for package in packages - set(scans):
            scans[package] = scan("")
        self.table = type(self.table)(scans, self.table.packages | packages)

    def _enter(self, module: str, name: str) -> str | None:
        if StandIn.has(self, f"{module}.{name}"):
            return super()._enter(module, name)
        home = self._home(f"{module}.{name}")
        if home is None:
            return None
        self._read(home)
        self.asked.setdefault(home, set()).add(name)
        if module != home:
            self.names.setdefault(module, {})[name] = Symbol("own", home, name)
        self._take(home)
        return None

    def origin(self, place: Path) -> Path:
        """See the base."""
        installed = self.installed / place
        return installed if self.shortens(place) else super().origin(place)

    def shortens(self, place: Path) -> bool:
        """See the base: of the files of models."""
        return len(place.parts) == 3 and place.parts[0] == "models"

    def _text(self, module: str) -> str:
        text = super()._text(module)
        if module not in self.asked:
            return text
        return self._rehomed(_configured(_shaken(text, self.asked[module])), module)

    def _rehomed(self, text: str, module: str) -> str:
        """The imports of a file of a model by their full names, of which some lead to the copy (``redirected``)."""
        lines = text.splitlines(keepends=True)
        for node in python_tree.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.level:
                source = self.table.absolute(module, node.module or "", node.level)
                names = ", ".join(map(ast.unparse, node.names))
                replace_lines(lines, node, f"from {source} import {names}")
        return "".join(lines)


def _shaken(text: str, asked: set[str]) -> str:
    """A file with the definitions that are asked for and what those need; no line moves."""
    tree = ast.parse(text)
    defined = {node.name: node for node in tree.body if isinstance(node, DEFINITIONS)}
    rest = [node for node in tree.body if not isinstance(node, (*DEFINITIONS, *IMPORTS))]
    rest = [node for node in rest if not _exports(node)]
    needed: set[str] = set()
    todo = list(asked)
    used = {name for node in rest for name in _names(node)}
    todo += used
    while todo:
        name = todo.pop()
        if name in needed or name not in defined:
            continue
        needed.add(name)
        if name.startswith(READERS):
            continue  # it only refuses
        more = set(_names(defined[name]))
        used |= more
        todo += more

    def keeps(node: ast.stmt) -> bool:
        return node.name in needed if isinstance(node, DEFINITIONS) else not _exports(node)

    return without(text, tree, keeps, used)


def _configured(text: str) -> str:
    """A file whose classes say which configuration they have, ``config: BertConfig``, as a value."""
    lines = text.splitlines(keepends=True)
    for node in ast.parse(text).body:
        for one in node.body if isinstance(node, ast.ClassDef) else ():
            if not isinstance(one, ast.AnnAssign) or one.value is not None:
                continue
            if ast.unparse(one.target) == "config" and isinstance(one.annotation, ast.Name):
                replace_lines(lines, one, f"config_class = {one.annotation.id}")
    return "".join(lines)


def _exports(node: ast.stmt) -> bool:
    """``__all__ = […]``, which names what is not there."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target = node.targets[0]
    return isinstance(target, ast.Name) and target.id == "__all__"


def _names(node: ast.AST) -> Iterator[str]:
    """The identifiers that a statement reads, also those of hints that are written as text."""
    for one in python_tree.walk(node):
        if isinstance(one, ast.Name):
            yield one.id
        elif (
            isinstance(one, ast.Constant)
            and isinstance(one.value, str)
            and one.value.isidentifier()
        ):
            yield one.value
