"""The files of a project by module name, and where the helpers that several of them need are written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from migrator.folders import RESERVED, imports_itself
from migrator.package.table import Table

HELPERS = "_torch_compat"
"""Name of the module that carries what several files of a package need."""


@dataclass(frozen=True)
class Member:
    """A file of a project.

    Attributes:
      module: the dotted name under which the project imports it.
      path: where it is, for messages.
      name: its place below the output directory.
      package: it is an ``__init__`` file.
      top: the module of the outermost package around it that is converted; empty for a loose file.
    """

    module: str
    path: str
    name: Path
    package: bool
    top: str = ""


def members(files: Iterable[tuple[Path, Path]]) -> list[Member]:
    """The files of a project with their module names.

    Args:
      files: path, and place below the directory that the user named.
    """
    found: list[Member] = []
    taken: set[str] = set()
    for path, name in files:
        parts, top = _module(path, name)
        if (
            parts[0] in RESERVED
        ):  # a folder of the repository, which an import of that name does not mean
            parts[0] += "#"
        module = unique = ".".join(parts)
        number = 2
        while (
            unique in taken
        ):  # two directories with files of the same name: no import reaches this one
            unique, number = f"{module}#{number}", number + 1
        taken.add(unique)
        found.append(Member(unique, str(path), name, path.name == "__init__.py", top))
    return found


def other_names(every: Iterable[Member]) -> dict[str, str]:
    """Further names of modules: ``src.net`` of the package ``net`` in a folder ``src`` without ``__init__.py``.

    Python finds it by either name, as its path holds the folder or what is in it.
    """
    found = {}
    taken = {member.module for member in every}
    for member in every:
        parts = [*member.name.parent.parts, *([] if member.package else [member.name.stem])]
        dotted = ".".join(parts)
        if dotted.endswith(f".{member.module}") and dotted not in taken:
            found[dotted] = member.module
    return found


def _module(path: Path, name: Path) -> tuple[list[str], str]:
    """The parts of a file's dotted name, and the name of the outermost package below the named directory."""
    folder = path.resolve().parent
    inside = len(name.parts) - 1
    if inside < len(folder.parts):
        package = imports_itself(folder.parents[inside - 1] if inside else folder)
        if package:
            parts = [*package, *name.parent.parts]
            return (parts if path.name == "__init__.py" else [*parts, path.stem]), ".".join(package)
    parts = []
    top = ""
    while (folder / "__init__.py").is_file() or (inside > 0 and _is_imported(folder, inside)):
        parts.insert(0, folder.name)
        if inside >= 0:
            top = str(len(parts))
        inside -= 1
        folder = folder.parent
    if not parts:
        return [*name.parts[:-1], path.stem], ""
    depth = len(parts) - int(top or len(parts))
    prefix = ".".join(parts[: depth + 1])
    return ([*parts] if path.name == "__init__.py" else [*parts, path.stem]), prefix


@cache
def _is_imported(folder: Path, above: int) -> bool:
    """Whether a folder without ``__init__.py`` is a part of the package around it: a file of that imports from it.

    Else it may hold scripts, which find the files beside them by their bare names.

    Args:
      above: how many folders above it belong to the project.
    """
    package = folder.parent
    for _ in range(above - 1):
        if (package / "__init__.py").is_file():
            break
        package = package.parent
    if not (package / "__init__.py").is_file():
        return False
    said = re.compile(rf"^\s*(?:from|import)\s+[\w.]*\.{re.escape(folder.name)}\b", re.MULTILINE)
    return any(
        said.search(file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted(package.rglob("*.py"))
    )


@dataclass
class HelperPlan:
    """For each file the module that it imports helpers from, and the files that those modules become.

    ``source`` maps a file's module name to the module it imports from (empty: it carries its helpers itself);
    ``places`` maps a helper module's dotted name to its place below the output directory, ``users`` a file's
    module name to that dotted name.
    """

    source: dict[str, str] = field(default_factory=dict)
    places: dict[str, Path] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)


def helper_plan(every: Sequence[Member], table: Table) -> HelperPlan:
    """Files that belong together share one helper module, so that a class of it is the same class to all."""
    plan = HelperPlan()
    for group in _groups(every, table):
        if len(group) == 1 and not group[0].top:
            continue
        # one deep down, as examples carry, is found by those beside it alone
        tops = sorted(
            {member.top for member in group if member.top},
            key=lambda top: (len(_folder(group, top).parts), top),
        )
        if tops:
            home, folder = tops[0], _folder(group, tops[0])
        else:
            home, folder = _loose_home(group, table), Path()
            folder = Path(*home.split(".")) if home else Path()
        name = HELPERS
        while (f"{home}.{name}" if home else name) in table.scans:
            name += "_"
        dotted = f"{home}.{name}" if home else name
        plan.places[dotted] = folder / f"{name}.py"
        for member in group:
            plan.users[member.module] = dotted
            beside = member.name.parent == folder
            called = _called(member, home, table)
            plan.source[member.module] = _import(member, called, name, beside)
    return plan


def _called(member: Member, home: str, table: Table) -> str:
    """A package as a loose file calls it, which may find it in a folder around it: ``src.net``."""
    if member.top or not home:
        return home
    names = {one.module for _, one in table.scans[member.module].imports() if not one.level}
    names |= {one.module for one in table.scans[member.module].stars if not one.level}
    for name in sorted(names & table.aliases.keys()):
        prefix = name.removesuffix(table.aliases[name])
        if f"{prefix}{home}" in table.aliases:
            return f"{prefix}{home}"
    return home


def _import(member: Member, home: str, name: str, beside: bool) -> str:
    if member.top == home and home:
        depth = member.module.count(".") - home.count(".")
        return "." * (depth + member.package) + name
    if not member.top and home and beside:
        return name  # a script finds the files beside it
    return f"{home}.{name}" if home else name


def _folder(group: Sequence[Member], top: str) -> Path:
    """The directory of a package below the output."""
    for member in group:
        if member.top == top:
            up = member.module.count(".") - top.count(".") + member.package
            folder = member.name
            for _ in range(up):
                folder = folder.parent
            return folder
    raise AssertionError(top)


def _loose_home(group: Sequence[Member], table: Table) -> str:
    """The folder of scripts that import the files beside them; empty when they start from the named directory."""
    folders = {member.module.rpartition(".")[0] for member in group}
    if len(folders) != 1:
        return ""
    folder = folders.pop()
    beside = any(
        table.absolute(member.module, one.module, 0) not in (one.module, None)
        for member in group
        for _, one in table.scans[member.module].imports()
        if not one.level
    )
    return folder if beside else ""


def _groups(every: Sequence[Member], table: Table) -> list[list[Member]]:
    """Members that import one another, directly or not, or stand in one package."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for member in every:
        if member.top:
            parent[root(member.module)] = root(f"package {member.top}")
        for other in sorted(table.dependencies(member.module)):
            parent[root(member.module)] = root(other)
    groups: dict[str, list[Member]] = {}
    for member in every:
        groups.setdefault(root(member.module), []).append(member)
    return list(groups.values())


def named_directories(every: Sequence[Member]) -> frozenset[str]:
    """The packages that are directories the user named: the output directory takes their place."""
    tops = {member.top: member for member in every if member.top}
    return frozenset(top for top, member in tops.items() if _folder([member], top) == Path())
