"""``--follow PACKAGE``: what a project imports of an installed library, converted along with it.

The sources are found on ``sys.path``; nothing of the library is imported or run. Only the files are taken that
hold a definition which the project reaches; an ``__init__`` that only hands names on is written anew with the
names that are asked for. The copy stands in the output as a package of its own, ``timm_flax`` for ``timm``.
"""

from __future__ import annotations

import ast
import importlib.machinery
import itertools
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from migrator import python_tree
from migrator.errors import UserError
from migrator.package.scan import Import, Scan, scan
from migrator.package.table import Symbol, Table
from migrator.project import File, write_text
from migrator.shaken import replace_lines
from migrator.source import SourceError, read_text

_SKIPPED = frozenset({"tests", "test", "__pycache__"})


def library_root(name: str) -> Path:
    """The directory of an installed package.

    Raises:
      UserError: no such package, or one that is no directory of Python files.
    """
    spec = importlib.machinery.PathFinder.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places or not (Path(places[0]) / "__init__.py").is_file():
        raise UserError(f"--follow {name}: no package of that name is installed")
    return Path(places[0])


def copied_name(library: str) -> str:
    """The name of a library's copy in the output."""
    return f"{library}_flax"


@dataclass
class Library:
    """The files of a library by module name, and those a project reaches.

    Attributes:
      within: the module below which files are taken, ``timm.layers`` of ``--follow timm.layers``.
      files: modules whose files are taken whole.
      names: package → name → the symbol that its ``__init__`` hands on.
    """

    name: str
    root: Path
    within: str
    paths: dict[str, Path] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    names: dict[str, dict[str, Symbol]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        packages = set()
        scans: dict[str, Scan] = {}
        for path in sorted(self.root.rglob("*.py")):
            parts = path.relative_to(self.root.parent).with_suffix("").parts
            if _SKIPPED & set(parts[1:]):
                continue
            if parts[-1] == "__init__":
                parts = parts[:-1]
                packages.add(".".join(parts))
            self.paths[".".join(parts)] = path
            scans[".".join(parts)] = scan(_text(path) or "")
        self.table = Table(scans, frozenset(packages))

    def covers(self, module: str) -> bool:
        """Whether a module is to be followed."""
        return module == self.within or module.startswith(f"{self.within}.")

    def redirect(self, dots: str) -> Redirect:
        """Where imports of it lead, from a file below as many packages as there are dots."""
        return Redirect(self.within, dots, copied_name(self.name))

    def reach(self, importer: Scan, module: str = "") -> None:
        """Take what a file imports of the library; ``module`` is its name where it is the library's own."""
        for name, one in importer.imports():
            source = self._source(one, module)
            if source is None:
                continue
            if one.name is None:
                self._namespace(name, one.module, importer)
            else:
                self._hand_on(source, one.name, name, importer)
        for star in importer.stars:
            source = self._source(star, module)
            if source is not None:
                self._take(source)

    def _source(self, one: Import, module: str) -> str | None:
        """The library's module that an import names."""
        if not one.level:
            return one.module if one.module.partition(".")[0] == self.name else None
        return self.table.absolute(module, one.module, one.level) if module else None

    def _namespace(self, head: str, module: str, importer: Scan) -> None:
        """``import timm.layers as L`` and the dotted paths that are read from it."""
        top = self.name if head == self.name else module
        self._paths(head, top, importer)

    def _paths(self, head: str, module: str, importer: Scan) -> None:
        read = [p.split(".")[1:] for p in importer.paths if p.split(".")[0] == head]
        if not read or (head in importer.values and module not in self.table.packages):
            self._take(module)
        for parts in read:
            here = module
            for part in parts:
                found = self._enter(here, part)
                if found is None:
                    break
                here = found

    def _hand_on(self, module: str, name: str, local: str, importer: Scan) -> None:
        found = self._enter(module, name)
        if found is not None:
            self._paths(local, found, importer)

    def _enter(self, module: str, name: str) -> str | None:
        """Make ``module.name`` available; the module it is, None where it is a definition."""
        symbol = self.table.resolve(module, name)
        if symbol is None or symbol.kind == "outside":
            self._take(module)
            return None
        if module in self.table.packages and (symbol.kind == "module" or symbol.module != module):
            self.names.setdefault(module, {})[name] = symbol
        if symbol.kind == "own":
            self._take(symbol.module)
            return None
        if symbol.module not in self.table.packages:
            self._take(symbol.module)
        return symbol.module

    def _take(self, module: str) -> None:
        """Take a file, and what it reaches itself."""
        if module in self.files or module not in self.paths or not self.covers(module):
            return
        self.files.add(module)
        self.reach(self.table.scans[module], module)

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Place below the copy and source of every file that is needed."""
        packages = {m for module in (*self.files, *self.names) for m in _above(module)}
        packages |= self.table.packages & (self.files | set(self.names))
        for module in sorted(self.files | packages):
            parts = module.split(".")[1:]
            package = module in packages
            place = Path(*parts, "__init__.py") if package else Path(*parts).with_suffix(".py")
            if module in self.files:
                yield place, self._text(module)
            else:
                yield place, self._init(module)

    def _text(self, module: str) -> str:
        """The source of a file that is taken."""
        return read_text(self.paths[module])

    def origin(self, place: Path) -> Path:
        """Where a file is that is taken to a place below the copy."""
        return self.root / place

    def shortens(self, place: Path) -> bool:
        """Whether parts of a file are left out, of which there are empty lines."""
        return False

    def _init(self, package: str) -> str:
        """An ``__init__`` with the names that are asked of it."""
        lines = []
        dots = "." * len(package.split("."))
        for name, symbol in sorted(self.names.get(package, {}).items()):
            below = symbol.module.partition(".")[2]
            what = symbol.name
            if symbol.kind == "module":
                below, _, what = below.rpartition(".")
            alias = f" as {name}" if what != name else ""
            lines.append(f"from {dots}{below} import {what}{alias}\n")
        return "".join(lines)


STAND_INS = Path(__file__).parent.parent / "stand_ins"
"""Libraries of which the parts that model files import stand here in plain torch."""


@dataclass
class StandIn(Library):
    """The parts of a library that are known here, by name: what else is imported of it stays."""

    def _enter(self, module: str, name: str) -> str | None:
        if not self.has(f"{module}.{name}"):
            return None
        if module not in self.table.packages:
            self._take(module)  # it hands on what another file has
        return super()._enter(module, name)

    def _namespace(self, head: str, module: str, importer: Scan) -> None:
        """``import transformers`` stays."""

    def redirect(self, dots: str) -> Redirect:
        """See the base; only of what is known."""
        return Redirect(self.within, dots, copied_name(self.name), self.has)

    def has(self, name: str) -> bool:
        """Whether the definition of a dotted name stands here."""
        module, _, last = name.rpartition(".")
        symbol = self.table.resolve(module, last) if module in self.table.scans else None
        return symbol is not None and symbol.kind == "own"


def stand_ins(texts: Iterable[str | None], names: Sequence[str] = ()) -> list[Library]:
    """The libraries of which files import what is known here, but for those that are followed anyway.

    Args:
      texts: sources of the files; None for one that cannot be read.
      names: of ``--follow``.
    """
    followed = {name.partition(".")[0] for name in names}
    read = [text for text in texts if text is not None]
    found: list[Library] = []
    for root in sorted(path for path in STAND_INS.iterdir() if path.is_dir()):
        named = re.compile(rf"^\s*from {root.name}\b", re.M)
        asking = [text for text in read if named.search(text)]
        if root.name in followed or not asking:
            continue
        library = StandIn(root.name, root, root.name)
        for text in asking:
            library.reach(scan(text))
        if library.files:
            found.append(library)
    return found


def _text(path: Path) -> str | None:
    """The text of a file, None where it is none."""
    try:
        return read_text(path)
    except SourceError as error:
        if isinstance(error.__cause__, OSError):
            raise
        return None


def _above(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


@dataclass(frozen=True)
class Redirect:
    """Where imports of a library lead: ``copy`` below as many packages up as there are ``dots``.

    ``within`` is the module below which imports are meant.
    """

    within: str
    dots: str
    copy: str
    has: Callable[[str], bool] | None = None
    """Which names are meant, where not all are."""

    def covers(self, name: str) -> bool:
        """Whether the import of a dotted name is meant."""
        if self.has is not None:
            return self.has(name)
        return f"{name}.".startswith(f"{self.within}.") or f"{self.within}.".startswith(f"{name}.")


def redirected(text: str, libraries: Sequence[Redirect]) -> str:
    """The source with the imports of libraries leading to their copies; no line moves."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    lines = text.splitlines(keepends=True)
    for node in python_tree.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module:
            rest = node.module.partition(".")[2]
            names = [f"{node.module}.{a.name}" for a in node.names]
            one = next((r for r in libraries if any(map(r.covers, names))), None)
            if one is not None and one.has is not None and not all(map(one.covers, names)):
                replace_lines(lines, node, _parted(node, one))
            elif one is not None:
                line = lines[node.lineno - 1]
                target = one.dots + ".".join([one.copy, *([rest] if rest else [])])
                head, tail = line[: node.col_offset], line[node.col_offset :]
                tail = re.sub(r"from\s+[\w.]+", f"from {target}", tail, count=1)
                lines[node.lineno - 1] = head + tail
        elif isinstance(node, ast.Import):
            if any(r.covers(a.name) for a in node.names for r in libraries):
                made = "; ".join(_plain_import(a, libraries) for a in node.names)
                replace_lines(lines, node, made)
    return "".join(lines)


def _parted(node: ast.ImportFrom, one: Redirect) -> str:
    """``from library import known, other`` in two: of the copy, and of the library."""
    rest = (node.module or "").partition(".")[2]
    target = one.dots + ".".join([one.copy, *([rest] if rest else [])])
    known = [a for a in node.names if one.covers(f"{node.module}.{a.name}")]
    parts = [(target, known), (node.module, [a for a in node.names if a not in known])]
    return "; ".join(
        f"from {source} import {', '.join(map(ast.unparse, several))}" for source, several in parts
    )


def _plain_import(alias: ast.alias, libraries: Sequence[Redirect]) -> str:
    top, _, rest = alias.name.partition(".")
    one = next((r for r in libraries if r.covers(alias.name)), None)
    if one is None:
        return f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
    dots, copy = one.dots, one.copy
    path = [copy, *rest.split(".")] if rest else [copy]
    if alias.asname and rest:
        return f"from {dots}{'.'.join(path[:-1])} import {path[-1]} as {alias.asname}"
    if dots:
        return f"from {dots} import {copy} as {alias.asname or top}"
    return f"import {copy} as {alias.asname or top}"


@dataclass(frozen=True)
class Followed:
    """Files of a project and of the libraries it follows, copied to a directory.

    Attributes:
      files: all of them, in the order of the project's, then the libraries'.
      origins: copy → the file it was made from, of which no line has moved; or the one that it stands for.
      roots: the directories of the libraries.
      shortened: copies of which parts are left out, that have no lines for them in the output.
    """

    files: list[File]
    origins: dict[Path, File]
    roots: list[Path] = field(default_factory=list)
    shortened: set[Path] = field(default_factory=set)

    @property
    def sources(self) -> list[File]:
        """The files of which these are copies, in their order."""
        return [self.origins[file.path] for file in self.files]


def _library(name: str) -> Library:
    """What ``--follow NAME`` takes files of."""
    from migrator.package.model_files import ModelFiles

    top = name.partition(".")[0]
    root, stand_in = library_root(top), STAND_INS / top
    if stand_in.is_dir():
        return ModelFiles(top, stand_in, top, installed=root)
    return Library(top, root, name)


def followed(
    files: Sequence[File],
    names: Iterable[str],
    directory: Path,
    parts: Mapping[Path, str] | None = None,
) -> Followed:
    """Copy a project, and what it reaches of libraries, to a directory with the imports redirected.

    Args:
      parts: file → what of it is meant, where not all is.
    """
    names, parts = list(names), parts or {}
    libraries = [_library(name) for name in names]
    texts = {file: parts.get(file.path, _text(file.path)) for file in files}
    for library in libraries:
        for text in texts.values():
            library.reach(scan(text or ""))
    libraries += stand_ins(texts.values(), names)
    count = -1
    while count != sum(len(library.files) for library in libraries):
        count = sum(len(library.files) for library in libraries)
        for one, other in itertools.permutations(libraries, 2):
            for module in sorted(one.files):
                other.reach(one.table.scans[module])
    package = any(file.name == Path("__init__.py") for file in files)
    if package:  # it keeps its name, under which it may import itself
        directory = directory / files[0].path.resolve().parents[len(files[0].name.parts) - 1].name
    made: list[File] = []
    origins: dict[Path, File] = {}
    shortened: set[Path] = set()

    def put(name: Path, text: str | None, origin: Path) -> None:
        place = directory / name
        dots = "." * len(name.parts) if package else ""
        meant = [n.redirect(dots) for n in libraries]
        if text is None:  # the copy is read no better, and is reported for that
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(origin, place)
        else:
            write_text(place, redirected(text, meant))
        made.append(File(place, name))
        origins[place] = File(origin, name)

    for file, text in texts.items():
        put(file.name, text, file.path)
        if file.path in parts:
            shortened.add(directory / file.name)
    for library in libraries:
        for place, text in library.texts():
            name = Path(copied_name(library.name)) / place
            put(name, text, library.origin(place))
            if library.shortens(place):
                shortened.add(directory / name)
    return Followed(made, origins, [library.root for library in libraries], shortened)
