"""What a file learns about the other files of its project, while its kinds are found and it is converted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from migrator.infer import Facts
from migrator.infer import kinds as k
from migrator.infer.symbols import symbol
from migrator.package.scan import Import
from migrator.package.summary import (
    Data,
    ForeignClass,
    ForeignFunction,
    decode,
    referenced,
)
from migrator.package.table import Symbol, Table


class Link:
    """Answers for the files that a component depends on, from their summaries (``migrator.infer.Linked``).

    Args:
      table: the symbol table of the project.
      summary: gives the summary of a file by its module name.
      handed_on: definitions that some file of the project hands on as values.
      read: definitions that another file reads, by qualified name.
      together: the files of the component itself, which are worked on at the same time.
      renamed: top-level packages that have another name in the output; they import themselves relatively.
    """

    def __init__(
        self,
        table: Table,
        summary: Callable[[str], Data],
        handed_on: frozenset[str] = frozenset(),
        read: frozenset[str] = frozenset(),
        renamed: frozenset[str] = frozenset(),
        together: frozenset[str] = frozenset(),
    ) -> None:
        self.table = table
        self.summary = summary
        self.handed_on = handed_on
        self.read = read
        self.renamed = renamed
        self.together = together
        self.traverses = table.traverses
        self.hands_makers = table.hands_makers
        self.keeps_makers = table.keeps_makers
        self.derived = table.derived
        self._heads: dict[tuple[str, str], list[Symbol]] = {}
        self.envs: dict[str, Mapping[str, k.Kind]] = {}
        """The names of the files of the component itself, as far as they are known."""

    def publish(self, module: str, env: Mapping[str, k.Kind]) -> None:
        """Make the names of a file that is being worked on known to the files it imports in a circle."""
        self.envs[module] = env

    # --- what inference asks --------------------------------------------------------------------------------------

    def bound(
        self, facts: Facts, importer: str, module: str, level: int, name: str
    ) -> k.Kind | None:
        """The kind that ``from module import name`` binds; None for what is not the project's."""
        target = self.table.absolute(importer, module, level)
        if target is None or not (self.table.is_module(target) or level):
            return k.UNKNOWN if level else None
        found = self.table.resolve(target, name)
        return k.UNKNOWN if found is None else self.kind(facts, found)

    def star(self, facts: Facts, importer: str, module: str, level: int) -> dict[str, k.Kind]:
        """What ``from module import *`` binds of the project's names that the file reads."""
        return {
            name: self.kind(facts, found)
            for name, found in self.star_names(importer, Import(module, level))
        }

    def star_names(self, importer: str, star: Import) -> list[tuple[str, Symbol]]:
        """The names of a star import that the file reads, and what they are."""
        return self.table.starred(importer, star)

    def lookup(self, facts: Facts, name: str) -> k.Kind | None:
        """The kind of a dotted name; None for what is not the project's."""
        if not self.table.own_root(name):
            return None
        found = self.table.module(name)
        return k.UNKNOWN if found is None else self.kind(facts, found)

    def head(self, importer: str, module: str) -> str:
        """The dotted name that ``import module`` means in a file."""
        return self.table.absolute(importer, module, 0) or module

    def shared(self, name: str) -> bool:
        """Whether another file reads a definition."""
        return name in self.read

    def in_place(self, module: str) -> frozenset[str]:
        """Parameters of a file's definitions, as ``Block.act``, that may be handed what overwrites its argument."""
        return self.table.in_place(module)

    def holders(self, importer: str, bases: Iterable[str]) -> tuple[frozenset[str], dict[str, int]]:
        """The names in a file of what other files make to work in place: ``relu = partial(nn.ReLU, inplace=True)``.

        And of the functions that do so where an argument says so, with its place.

        ``bases``: the qualified names of the classes that its own derive from, and whose attributes they have.
        """
        found: set[str] = set()
        asking: dict[str, int] = {}
        for name, meant in self._read_from(importer):
            there, told = self._held(meant.module)
            if meant.kind == "module":
                found |= there
                asking |= told
            elif meant.name in there:
                found.add(name)
            elif meant.name in told:
                asking[name] = told[meant.name]
        for base in bases:
            found |= self._held(self._home(base) or "")[0]
        return frozenset(found), asking

    def lost(self, importer: str) -> frozenset[str]:
        """The names in a file of what may be, in another, a class that writes to its argument whatever it is told."""
        found: set[str] = set()
        for name, meant in self._read_from(importer):
            if meant.module in self.table.scans and meant.module not in self.together:
                there = self.summary(meant.module)["lost"]
                whole = meant.kind == "module"
                found.update(there if whole else {name} if meant.name in there else ())
        return frozenset(found)

    def _read_from(self, importer: str) -> Iterator[tuple[str, Symbol]]:
        """The names that a file imports, and what each means in the files that it reads."""
        scan = self.table.scans[importer]
        named = [(name, self.table.imported(importer, one)) for name, one in scan.imports()]
        named += [pair for star in scan.stars for pair in self.star_names(importer, star)]
        for name, meant in named:
            if meant is not None and meant.module in self.table.needs(importer):
                yield name, meant

    def _held(self, module: str) -> tuple[frozenset[str], dict[str, int]]:
        if module not in self.table.scans or module in self.together:
            return frozenset(), {}
        summary = self.summary(module)
        return frozenset(summary["holders"]), summary["told"]

    def emptied(self, module: str) -> frozenset[str]:
        """The names of attributes that other files than this may take something out of, or replace."""
        return self.table.emptied(module)

    def lists_dicts(self, module: str) -> bool:
        """Whether another file may go over a ModuleDict that a file makes."""
        return self.table.lists_dicts(module)

    def listed(self, module: str) -> frozenset[str]:
        """The attributes that a file makes a Sequential and another goes over as a list, ``net.body``."""
        return self.table.listed(module)

    def registered_elsewhere(self, module: str) -> frozenset[str]:
        """What other files register as parameters or buffers and a file may give values, ``name`` or ``Class.name``."""
        return self.table.registered_elsewhere(module)

    def given_out(self, module: str) -> frozenset[str]:
        """The names of a file's classes whose objects functions of other files return, and no other file keeps."""
        return self.table.given_out(module)

    def gives(self, module: str, name: str) -> bool:
        """Whether another file may get a name from a file that merely imports it; from a package anybody may."""
        return module in self.table.packages or bool({name, "*"} & self.table.asked(module))

    def place(self, importer: str, module: str, level: int, name: str | None) -> str:
        """Where an import leads: "own" or "outside" of the project, or "missing" from it."""
        target = self.table.absolute(importer, module, level)
        if target is None:
            return "missing"
        if name is None:
            found = self.table.module(target)
        elif level or self.table.is_module(target):
            found = self.table.resolve(target, name)
        else:
            found = self.table.module(f"{target}.{name}")
        if found is None:
            return "missing"
        return "own" if level or self.table.own_root(target) else "outside"

    def is_missing(self, importer: str, name: str) -> bool:
        """Whether all imports of a name in a file lead to nothing that the project has."""
        several = self.table.scans[importer].bindings.get(name, [])
        return bool(several) and all(
            one is not None and self.table.imported(importer, one) is None for one in several
        )

    def spelled(self, importer: str, module: str, level: int) -> tuple[str, int]:
        """The ``from`` clause that means the same file in the output: dotted name and number of dots."""
        target = self.table.absolute(importer, module, level)
        if level or target is None or target.partition(".")[0] not in self.renamed:
            return module, level
        return relative(importer, target, importer in self.table.packages)

    def is_module(self, name: str) -> bool:
        """Whether a dotted name is a file or a folder of files of the project."""
        return self.table.is_module(name)

    def defined(self, module: str, name: str) -> tuple[str, str] | None:
        """The file of the project that defines what ``module.name`` is, and its name there."""
        found = self.table.resolve(module, name)
        return (found.module, found.name) if found is not None and found.kind == "own" else None

    def reaches(self, module: str, other: str) -> bool:
        """Whether a file of the project reads what another one defines, or reads a file that does."""
        waiting, seen = [module], {module}
        while waiting:
            new = self.table.dependencies(waiting.pop()) - seen
            if other in new:
                return True
            seen |= new
            waiting.extend(new)
        return False

    def leads_out(self, importer: str, head: str, path: Sequence[str]) -> bool:
        """Whether all that a dotted name of a file may mean is outside of the project, or is one of its files."""
        heads = self._heads.get((importer, head))
        if heads is None:
            heads = self._heads[importer, head] = self._imported(importer, head)
        if not heads:
            return True
        found = [self.table.path(importer, one, path) for one in heads]
        return all(
            one is None or one.kind != "own" or self._is_handed_through(one) for one in found
        )

    def _is_handed_through(self, found: Symbol) -> bool:
        """Whether a file has a name by imports from outside alone, what it does where they fail aside.

        ``try: from torch import _assert`` with a definition of its own below is torch's, if that import is known.
        """
        scan = self.table.scans[found.module]
        several = scan.bindings.get(found.name, [])
        imports = [self.table.imported(found.module, one) for one in several if one is not None]
        outside = [one.module for one in imports if one is not None and one.kind == "outside"]
        if not outside or len(outside) != len(imports):
            return False
        if None not in several:
            return True
        return found.name in scan.fallbacks and self._own(found) in map(symbol, outside)

    def _imported(self, importer: str, name: str) -> list[Symbol]:
        """What the imports of a name in a file bring of the project."""
        scan = self.table.scans[importer]
        found = [self.table.imported(importer, one) for n, one in scan.imports() if n == name]
        if not found:
            stars = (pair for star in scan.stars for pair in self.star_names(importer, star))
            found = [one for n, one in stars if n == name]
        return [one for one in found if one is not None and one.kind != "outside"]

    def stars(self, importer: str) -> frozenset[str]:
        """The names that star imports bring into a file."""
        scan = self.table.scans[importer]
        return frozenset(name for star in scan.stars for name, _ in self.star_names(importer, star))

    # --- kinds ----------------------------------------------------------------------------------------------------

    def kind(self, facts: Facts, found: Symbol) -> k.Kind:
        """The kind of a symbol; the definitions it mentions become known to the facts."""
        if found.kind == "module":
            return k.Namespace(found.module)
        if found.kind == "outside":
            return symbol(found.module)
        kind = self._own(found)
        if found.module not in self.together:
            self._require(facts, kind)
        return kind

    def _own(self, found: Symbol) -> k.Kind:
        """The kind that a file of the project gives a name at its top."""
        if found.module in self.together:
            return self.envs.get(found.module, {}).get(found.name, k.UNKNOWN)
        if found.module not in self.table.scans:
            return k.UNKNOWN
        literal = self.table.literal(found)
        if literal is not None:
            return k.Scalar(literal)
        if not self._is_read(found.module):
            return k.UNKNOWN
        data = self.summary(found.module)["env"].get(found.name)
        return decode(data) if data is not None else k.UNKNOWN

    def _is_read(self, module: str) -> bool:
        """Whether a file is understood before these: ``parts = pkg.parts; parts.Block()`` names none of those it opens."""
        return any(module in self.table.below[one] for one in self.together)

    def _require(self, facts: Facts, kind: Any) -> None:
        for name in referenced(kind):
            if name and name not in facts.classes and name not in facts.names:
                self._define(facts, name)

    def _define(self, facts: Facts, name: str) -> None:
        module = self._home(name)
        if module is None or module in self.together or not self._is_read(module):
            return
        summary = self.summary(module)
        if name in summary["classes"]:
            self._define_class(facts, name, summary["classes"][name])
        elif name in summary["functions"]:
            made = ForeignFunction(name, summary["functions"][name], None)
            words = set(_WORD.findall(summary["functions"][name]["text"]))
            env = {n: decode(summary["env"][n]) for n in words & set(summary["env"])}
            facts.names[name] = made
            made.closure = env
            self._require(facts, tuple(env.values()))
            self._require(facts, (*made.params.values(), made.returns))
        elif (outer := name.rpartition(".")[0]) in summary["classes"]:
            if outer not in facts.classes:  # else it has nothing of that name
                self._define(facts, outer)

    def _define_class(self, facts: Facts, name: str, data: Data) -> None:
        made = ForeignClass(name, data)
        facts.classes[name] = made
        for method, one in data["methods"].items():
            made.methods[method] = ForeignFunction(f"{name}.{method}", one, made)
            facts.names[f"{name}.{method}"] = made.methods[method]
        for parent in data["parents"]:
            if parent not in facts.classes:
                self._define(facts, parent)
            if parent in facts.classes:
                made.parents.append(facts.classes[parent])
        self._require(facts, (*made.bases, *made.attributes.values(), *made.statics.values()))
        for info in made.methods.values():
            self._require(facts, (*info.params.values(), info.returns))

    def _home(self, name: str) -> str | None:
        """The file of the project that defines a qualified name: none for what a file that is missing would have."""
        while "." in name:
            name, _, last = name.rpartition(".")
            if name in self.table.scans:
                return name if None in self.table.scans[name].bindings.get(last, ()) else None
        return None


def relative(importer: str, target: str, package: bool) -> tuple[str, int]:
    """A module as an import inside its top-level package names it: the name behind the dots, and how many."""
    here = importer.split(".") if package else importer.split(".")[:-1]
    there = target.split(".")
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    return ".".join(there[common:]), len(here) - common + 1


_WORD = re.compile(r"[^\W\d]\w*")
