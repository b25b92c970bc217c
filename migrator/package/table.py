"""The symbol table of a project: which file defines what an import names, and in which order files are read."""

from __future__ import annotations

import fnmatch
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from migrator.infer.handing import parameters
from migrator.infer.registered import ANY, kin
from migrator.package.scan import Import, Scan


@dataclass(frozen=True)
class Symbol:
    """What a name stands for.

    ``kind`` is "own" (defined at the top of project file ``module`` under ``name``), "module" (the project's file
    ``module``) or "outside" (``module`` is the dotted name of something that is no file of the project).
    """

    kind: str
    module: str
    name: str = ""


class Table:
    """Resolves names across the files of a project.

    Args:
      scans: module name → outline of the file.
      packages: the modules that are ``__init__`` files.
      aliases: further names under which a module is imported (``src.net`` for ``net``).
    """

    def __init__(
        self,
        scans: Mapping[str, Scan],
        packages: frozenset[str],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.scans = scans
        self.packages = packages
        self.aliases = dict(aliases or {})
        self._starred: dict[tuple[str, Import], list[tuple[str, Symbol]]] = {}
        self._resolved: dict[tuple[str, str], Symbol | None] = {}
        self._dependencies: dict[str, frozenset[str]] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._elsewhere: dict[str, frozenset[str]] = {}

    @cached_property
    def _folders(self) -> frozenset[str]:
        """Prefixes of module names that are no files themselves: namespace packages."""
        found = set()
        for module in (*self.scans, *self.aliases):
            while "." in module:
                module = module.rpartition(".")[0]
                found.add(module)
        return frozenset(found - set(self.scans) - set(self.aliases))

    def absolute(self, importer: str, module: str, level: int) -> str | None:
        """The dotted name a ``from`` clause means; None when the dots lead out of all packages."""
        if not level:
            return self._near(importer, module)
        parts = importer.split(".")
        drop = level - 1 if importer in self.packages else level
        if drop > len(parts) or (drop == len(parts) and not module):
            return None
        base = parts[: len(parts) - drop]
        return ".".join([*base, *([module] if module else [])])

    def _near(self, importer: str, module: str) -> str:
        """An absolute import; a script finds the files beside it first."""
        known = self._known(module)
        if known != module:
            return known
        parent = importer.rpartition(".")[0]
        if parent and parent not in self.scans:
            beside = f"{parent}.{module}"
            if beside in self.scans or beside in self._folders:
                return beside
        return module

    def is_module(self, name: str) -> bool:
        """Whether a dotted name is a file or a folder of files of the project."""
        return name in self.scans or name in self._folders

    def own_root(self, name: str) -> bool:
        """Whether a dotted name starts with a top-level name of the project."""
        return self._known(name).partition(".")[0] in self._tops

    def _known(self, name: str) -> str:
        """``net.m.M`` for ``src.net.m.M``."""
        if self.aliases and name not in self.scans:
            rest = ""
            head = name
            while head:
                if head in self.aliases:
                    return self.aliases[head] + rest
                head, _, last = head.rpartition(".")
                rest = f".{last}{rest}"
        return name

    @cached_property
    def _tops(self) -> frozenset[str]:
        return frozenset(module.partition(".")[0] for module in self.scans)

    # --- names ----------------------------------------------------------------------------------------------------

    def imported(self, importer: str, one: Import) -> Symbol | None:
        """What an import binds; None for something the project should define and does not."""
        module = self.absolute(importer, one.module, one.level)
        if module is None:
            return None
        if one.name is None:
            return self.module(module)
        return self.resolve(module, one.name)

    def module(self, name: str) -> Symbol | None:
        """What a dotted name stands for."""
        name = self._known(name)
        if self.is_module(name):
            return Symbol("module", name)
        parent, _, last = name.rpartition(".")
        if parent and self.is_module(parent):
            return self.resolve(parent, last)
        if parent and self.own_root(name):
            found = self.module(parent)
            return self._member(found, last) if found is not None else None
        return Symbol("outside", name)

    def _member(self, symbol: Symbol, name: str) -> Symbol | None:
        if symbol.kind == "module":
            return self.resolve(symbol.module, name)
        if symbol.kind == "outside":
            return Symbol("outside", f"{symbol.module}.{name}")
        return None

    def resolve(self, module: str, name: str) -> Symbol | None:
        """What ``module.name`` is, through re-exports and stars; None when the module has no such name."""
        if f"{module}.{name}" in self.aliases:
            return Symbol("module", self.aliases[f"{module}.{name}"])
        if not self.is_module(module):
            return None if self.own_root(module) else Symbol("outside", f"{module}.{name}")
        key = (module, name)
        if key not in self._resolved:
            self._resolved[key] = None  # the answer for a name that is reached through itself only
            self._resolved[key] = self._resolve(module, name)
        return self._resolved[key]

    def _resolve(self, module: str, name: str) -> Symbol | None:
        scan = self.scans.get(module)
        inner = f"{module}.{name}"
        if scan is None:
            return Symbol("module", inner) if self.is_module(inner) else None
        several = scan.bindings.get(name, [])
        known = {self.imported(module, one) if one is not None else None for one in several}
        if None in several or len(known) > 1:
            return Symbol("own", module, name)
        found = next(iter(known), None)
        if found is not None:
            return found
        for star in scan.stars:
            source = self.absolute(module, star.module, star.level)
            if source is None or source == module or not self.public(source, name):
                continue
            found = self.resolve(source, name)
            if found is not None and found.kind != "outside":
                return found
        return Symbol("module", inner) if self.is_module(inner) else None

    def public(self, module: str, name: str) -> bool:
        """Whether ``from module import *`` brings a name, if the module has it."""
        scan = self.scans.get(module)
        if scan is None:
            return not self.own_root(module)
        return name in scan.exports if scan.exports is not None else not name.startswith("_")

    def path(self, importer: str, head: Symbol, rest: Iterable[str]) -> Symbol | None:
        """What ``head.a.b`` reaches: the symbol where the path leaves the modules."""
        found: Symbol | None = head
        for name in rest:
            if found is None or found.kind != "module":
                return found
            found = self.resolve(found.module, name)
        return found

    def starred(self, module: str, star: Import) -> list[tuple[str, Symbol]]:
        """The names of the project that a star import brings and the file reads, and what they are."""
        key = (module, star)
        if key not in self._starred:
            source = self.absolute(module, star.module, star.level)
            known = source is not None and self.is_module(source)
            words = self.scans[module].words if known else ()
            read = (word for word in words if self.public(source or "", word))
            found = ((word, self.resolve(source or "", word)) for word in read)
            self._starred[key] = [(word, one) for word, one in found if one is not None]
        return self._starred[key]

    # --- files ----------------------------------------------------------------------------------------------------

    def reads(self, module: str) -> Iterator[Symbol]:
        """Everything of the project that a file may read."""
        scan = self.scans[module]
        heads: dict[str, list[Symbol]] = {}
        for name, one in scan.imports():
            found = self.imported(module, one)
            if found is not None and found.kind != "outside":
                heads.setdefault(name, []).append(found)
                yield found
        for star in scan.stars:
            for word, found in self.starred(module, star):
                if found.kind != "outside":
                    heads.setdefault(word, []).append(found)
                    yield found
        for dotted in scan.paths:
            head, *rest = dotted.split(".")
            for symbol in heads.get(head, ()):
                found = self.path(module, symbol, rest)
                if found is not None and found.kind == "own":
                    yield found

    def dependencies(self, module: str) -> frozenset[str]:
        """The files whose definitions a file reads."""
        found = self._dependencies.get(module)
        if found is None:
            found = frozenset(s.module for s in self.reads(module) if s.kind == "own") - {module}
            self._dependencies[module] = found
        return found

    def needs(self, module: str) -> frozenset[str]:
        """Those of them that must be understood before: what a number or a text is can be seen at once.

        ``from . import __version__`` would tie every file to a package that imports them all.
        """
        found = self._needs.get(module)
        if found is None:
            own = (s for s in self.reads(module) if s.kind == "own" and self.literal(s) is None)
            found = self._needs[module] = frozenset(s.module for s in own) - {module}
        return found

    def literal(self, found: Symbol) -> str | None:
        """The type of a name that is a number or a text, and never anything else; None for all others."""
        scan = self.scans.get(found.module)
        if scan is None or found.name not in scan.literals:
            return None
        for star in scan.stars:
            source = self.absolute(found.module, star.module, star.level)
            if source is None or self.public(source, found.name):
                return None  # it may bring the name as well
        return scan.literals[found.name]

    def reached(self) -> frozenset[str]:
        """The files of which another file of the project may get to know a definition, by whatever way.

        It imports them or from them, or a package that they are in: ``layers = pkg.layers; layers.Block()`` names no
        file in a way that ``dependencies`` follows.
        """
        read: set[str] = set()
        opened: set[str] = set()
        for module, scan in self.scans.items():
            read |= self.dependencies(module)
            opened |= {self.absolute(module, s.module, s.level) or "" for s in scan.stars}
            for _, one in scan.imports():
                found = self.imported(module, one)
                if found is not None and found.kind != "outside":
                    (opened if found.kind == "module" else read).add(found.module)
        return frozenset(m for m in self.scans if m in read or not opened.isdisjoint(_around(m)))

    def handed_on(self) -> frozenset[str]:
        """Qualified names of definitions that some file hands on as values, not only calls."""
        found = set()
        for module, scan in self.scans.items():
            values = set(scan.values)
            for name in values & set(scan.bindings):
                symbol = self.resolve(module, name)
                if symbol is not None and symbol.kind == "own" and symbol.module != module:
                    found.add(f"{symbol.module}.{symbol.name}")
            for dotted in scan.paths:
                head, *rest = dotted.split(".")
                start = self.resolve(module, head)
                if start is None or start.kind != "module":
                    continue
                symbol = self.path(module, start, rest)
                if symbol is not None and symbol.kind == "own":
                    found.add(f"{symbol.module}.{symbol.name}")
        return frozenset(found)

    @cached_property
    def _emptying(self) -> Counter[str]:
        """How many files may take something out of an attribute of a name, or replace it."""
        return Counter(word for scan in self.scans.values() for word in scan.emptied)

    @cached_property
    def emptied_digest(self) -> str:
        """A text that differs where ``emptied`` does."""
        return hashlib.sha256(repr(sorted(self._emptying.items())).encode()).hexdigest()

    def in_place(self, module: str) -> frozenset[str]:
        """Parameters of a file's definitions, as ``Block.act``, that may be handed what overwrites its argument."""
        return self._in_place.get(module, frozenset())

    @cached_property
    def _in_place(self) -> dict[str, frozenset[str]]:
        pairs = {module: scan.handed for module, scan in self.scans.items()}
        return parameters(pairs, self._home)

    def _home(self, module: str, name: str) -> tuple[str, str]:
        """The file that defines what a file means by a name, empty where that is not known, and its name there."""
        bound = name in self.scans[module].bindings
        found = self.resolve(module, name) if bound else None
        own = found is not None and found.kind == "own"
        return (found.module, found.name) if found is not None and own else ("", name)

    def emptied(self, module: str) -> frozenset[str]:
        """The names of attributes that other files than this may take something out of, or replace."""
        own = set(self.scans[module].emptied) if module in self.scans else set[str]()
        return frozenset(w for w, number in self._emptying.items() if number > (w in own))

    @cached_property
    def _listed(self) -> Counter[str]:
        """How many files may go over an attribute of a name."""
        return Counter(word for scan in self.scans.values() for word in scan.listed)

    def lists_dicts(self, module: str) -> bool:
        """Whether another file may go over a ModuleDict that a file makes, by the names of attributes alone."""
        if module not in self.scans:
            return False
        own = self.scans[module]
        return any(self._listed[name] > (name in own.listed) for name in own.dicts)

    def listed(self, module: str) -> frozenset[str]:
        """The attributes that a file makes a Sequential and another goes over as a list, ``net.body``."""
        own = set(self.scans[module].sequentials) if module in self.scans else set[str]()
        others = [scan.items for name, scan in self.scans.items() if own and name != module]
        return frozenset(word for items in others for word in items if word in own)

    @cached_property
    def _returned(self) -> Counter[str]:
        """How many files return what they call by a name."""
        return Counter(word for scan in self.scans.values() for word in scan.returned)

    @cached_property
    def _stored(self) -> Counter[str]:
        """How many files keep what they call by a name."""
        return Counter(word for scan in self.scans.values() for word in scan.stored)

    def given_out(self, module: str) -> frozenset[str]:
        """The names of a file's definitions whose objects functions of other files return, and no other file keeps."""
        own = self.scans.get(module)
        if own is None:
            return frozenset()
        returned, stored = set(own.returned), set(own.stored)
        return frozenset(
            word
            for word in own.bindings
            if self._returned[word] > (word in returned) and self._stored[word] == (word in stored)
        )

    @cached_property
    def _kin(self) -> Mapping[str, frozenset[str]]:
        """For each class those whose attributes its methods may meet in ``self``, by their last names."""
        above: dict[str, set[str]] = {}
        for scan in self.scans.values():
            for name, base in scan.bases:
                above.setdefault(name, set()).add(base)
        return kin({name: frozenset(several) for name, several in above.items()})

    def registered_elsewhere(self, module: str) -> frozenset[str]:
        """What other files register as parameters or buffers and a file may give values.

        ``name`` for any object, ``Class.name`` for what a class of the file may meet in ``self``; ``*.name`` for any
        object, too, where a name that is not known at all is registered somewhere.
        """
        if module not in self._elsewhere:
            self._elsewhere[module] = frozenset(self._registered_elsewhere(module))
        return self._elsewhere[module]

    def _registered_elsewhere(self, module: str) -> set[str]:
        own = self.scans.get(module)
        if own is None or not own.assigned:
            return set()
        written, every = set(own.assigned), ANY in own.assigned
        found: set[str] = set()
        for name, places in self._registering.items():
            names = fnmatch.filter(written, name) if ANY in name else [name] * (name in written)
            if every:
                names = [*names, name]
            for other, cls in places if names else ():
                if other == module:
                    continue
                known = [one for one, _ in own.bases] if cls != ANY else list(own.bindings)
                related = [one for one in known if cls == ANY or cls in self._kin.get(one, ())]
                anything = set(name) == {ANY}
                if not (anything and cls == ANY):
                    found.update(f"{one}.{n}" for one in related for n in names)
                found.update(f"{ANY}.{n}" if anything else n for n in names)
        return found

    @cached_property
    def _registering(self) -> Mapping[str, list[tuple[str, str]]]:
        """The names of parameters and buffers, and for each the files and classes that register one."""
        found: dict[str, list[tuple[str, str]]] = {}
        for module, scan in self.scans.items():
            for cls, name in scan.registered:
                found.setdefault(name, []).append((module, cls))
        return found

    def asked(self, module: str) -> frozenset[str]:
        """The names that other files may get from a file; ``*`` where one takes all."""
        stars = {"*"} if any(one == module for _, one in self._stars) else set()
        return frozenset(name for asking, name in self._asked if asking != module) | stars

    @cached_property
    def _asked(self) -> frozenset[tuple[str, str]]:
        """Each file with the names it asks others for, whichever they are."""
        return frozenset(
            (module, name)
            for module, scan in self.scans.items()
            for name in (
                *(
                    one.name
                    for _, one in scan.imports()
                    if one.name is not None and not self._from_outside(module, one)
                ),
                *(part for path in scan.paths for part in path.split(".")[1:]),
            )
        )

    def _from_outside(self, importer: str, one: Import) -> bool:
        """Whether a ``from`` clause names something that is none of the project's."""
        target = self.absolute(importer, one.module, one.level)
        return target is not None and not self.own_root(target)

    @cached_property
    def _stars(self) -> frozenset[tuple[str, str | None]]:
        """Each file with the files of whose names it takes all."""
        return frozenset(
            (module, self.absolute(module, star.module, star.level))
            for module, scan in self.scans.items()
            for star in scan.stars
        )

    @cached_property
    def traverses(self) -> bool:
        """Whether a file of the project asks for the children of modules."""
        return any(scan.traverses for scan in self.scans.values())

    @cached_property
    def hands_makers(self) -> bool:
        """Whether a file of the project hands classes of modules around, or says that it takes what makes one."""
        return any(scan.hands_makers for scan in self.scans.values())

    @cached_property
    def keeps_makers(self) -> bool:
        """Whether a file of the project puts classes into tables by decorators, or looks them up by dotted names."""
        return any(scan.keeps_makers for scan in self.scans.values())

    @cached_property
    def derived(self) -> frozenset[tuple[str, str]]:
        """Layers of torch and the classes of the project that derive from them, by their last names."""
        return frozenset((a, b) for scan in self.scans.values() for a, b in scan.derived)

    def components(self) -> list[tuple[str, ...]]:
        """The files in the order in which they can be read: what imports one another stands together."""
        return self._parts

    @cached_property
    def _parts(self) -> list[tuple[str, ...]]:
        graph = {module: sorted(self.needs(module)) for module in sorted(self.scans)}
        return list(_components(graph))

    @cached_property
    def below(self) -> Mapping[str, frozenset[str]]:
        """For each file those that are understood before it: what it needs, and what these need."""
        found: dict[str, frozenset[str]] = {}
        for group in self._parts:
            needed = frozenset().union(*map(self.needs, group)) - set(group)
            below = needed.union(*(found[one] for one in needed))
            found |= dict.fromkeys(group, below - set(group))
        return found


def _components(graph: Mapping[str, list[str]]) -> Iterator[tuple[str, ...]]:
    """Tarjan's strongly connected components, dependencies first, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in graph:
        if root in index:
            continue
        work: list[tuple[str, int]] = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            children = graph[node]
            descended = False
            for i in range(at, len(children)):
                child = children[i]
                if child not in index:
                    work += [(node, i + 1), (child, 0)]
                    descended = True
                    break
                if child in on_stack:
                    low[node] = min(low[node], index[child])
            if descended:
                continue
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
            if low[node] == index[node]:
                found = []
                while True:
                    last = stack.pop()
                    on_stack.discard(last)
                    found.append(last)
                    if last == node:
                        break
                yield tuple(sorted(found))


def _around(module: str) -> Iterator[str]:
    """A module and the packages that it is in."""
    while module:
        yield module
        module = module.rpartition(".")[0]
