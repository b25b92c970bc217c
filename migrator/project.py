"""Many files: which ones, what becomes of each, and writing outputs without losing anybody's work."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from migrator.errors import UserError
from migrator.findings import Finding, ordered
from migrator.folders import Resolved, imported_folders

if TYPE_CHECKING:
    from migrator.infer.observed import Observed
    from migrator.package.build import Outcome
    from migrator.package.follow import Followed
    from migrator.package.run import Project

T = TypeVar("T")
Track = Callable[[Sequence[T], str], Iterable[T]]
"""Wraps a sequence in a progress display; ``migrator.report.progress.track`` is one."""

MANIFEST = ".migrate-manifest.json"
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})


@dataclass(frozen=True)
class File:
    """A Python file to work on; ``name`` is its place below the output directory."""

    path: Path
    name: Path


@dataclass(frozen=True)
class Converted:
    """One file after conversion."""

    file: File
    source: str
    code: str
    findings: tuple[Finding, ...]
    complete: bool
    part: str = ""
    """What of the file was asked for, where that is not all of it."""

    @cached_property
    def whole(self) -> list[str]:
        """The models of a file that is not complete which need nothing of what is left: ``FILE:NAME`` converts them."""
        from migrator.shaken import whole

        lines = {finding.line for finding in self.findings if finding.blocks}
        return whole(self.part or self.source, lines) if lines and not self.complete else []


@dataclass
class Conversion:
    """What became of all files; ``written`` are the outputs that exist now, ``helpers`` modules that several import from."""

    files: list[Converted] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    helpers: dict[Path, str] = field(default_factory=dict)
    notes: list[Finding] = field(default_factory=list)
    """Findings of the project as a whole, which block nothing."""
    observed: list[Finding] = field(default_factory=list)
    """Notes on what was seen in a run of the original, not proven, and decided something."""

    @property
    def findings(self) -> list[Finding]:
        own = (finding for file in self.files for finding in file.findings)
        return ordered([*self.notes, *self.observed, *own])

    @property
    def complete(self) -> bool:
        return all(file.complete for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: each source with its output (None when nothing was written)."""
        outputs: list[Path | None] = [*self.written] or [None] * len(self.files)
        return {
            "complete": self.complete,
            "observed": len(self.observed),
            "files": [
                {
                    "source": str(file.file.path),
                    "output": str(output) if output else None,
                    "complete": file.complete,
                    "whole": file.whole,
                }
                for file, output in zip(self.files, outputs, strict=True)
            ],
        }

    def diff(self) -> Iterator[str]:
        """A unified diff from each source to its conversion."""
        for file in self.files:
            yield from difflib.unified_diff(
                file.source.splitlines(keepends=True),
                file.code.splitlines(keepends=True),
                str(file.file.path),
                f"{file.file.path} (Flax)",
            )


# --- which files -----------------------------------------------------------------------------------


def _python_files(directory: Path, ignored: Callable[[Path], bool]) -> Iterator[Path]:
    for entry in sorted(directory.iterdir()):
        if entry.name.startswith(".") or entry.name in _SKIPPED or ignored(entry):
            continue
        if entry.is_dir():
            if not any((entry / name).exists() for name in ("pyvenv.cfg", MANIFEST)):
                yield from _python_files(entry, ignored)
        elif entry.suffix == ".py":
            yield entry


def discover(
    paths: Iterable[str | Path], include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> list[File]:
    """The Python files meant by files and directories, each once, in a fixed order.

    Hidden directories, caches, virtual environments, what ``convert`` wrote and what a .gitignore names are left out.
    Of several paths a package keeps its name, and so does a folder that a file imports by it.

    Args:
      include, exclude: patterns as in a .gitignore, for files of the directories.

    Raises:
      UserError: a path that does not exist, is no Python, or holds none.
    """
    from migrator.package.ignore import Ignored, chosen

    found: dict[Path, File] = {}
    resolved, named = Resolved(), [Path(path) for path in paths]
    kept = imported_folders(named, lambda one: _python_files(one, Ignored(one)))
    for path in named:
        if path.is_dir():
            names = ((p, p.relative_to(path)) for p in _python_files(path, Ignored(path)))
            # the output takes the place of a directory, but not of a package beside something else
            package = (path / "__init__.py").is_file() and len(named) > 1
            base = path.resolve().name if package else kept.get(path, "")
            files = [
                File(p, Path(base, name)) for p, name in names if chosen(name, include, exclude)
            ]
            if not files:
                which = " that --include and --exclude leave" * bool(include or exclude)
                raise UserError(f"{path}: a directory with no Python file in it{which}")
        elif not path.exists():
            raise UserError(f"{path}: no such file")
        elif path.suffix not in ("", ".py", ".pyw", ".pyi"):
            what = "a notebook; save its code as a .py file first"
            raise UserError(f"{path}: {what if path.suffix == '.ipynb' else 'no Python file'}")
        else:
            files = [File(path, Path(kept.get(path, ""), path.name))]
        for file in files:
            found.setdefault(resolved(file.path), file)
    return list(found.values())


def _no_progress(items: Sequence[T], label: str) -> Iterable[T]:
    return items


# --- analyze and convert -----------------------------------------------------------------------------


def analyze_paths(
    paths: Iterable[str | Path], track: Track[File] = _no_progress, **options: Any
) -> tuple[list[File], list[Finding]]:
    """Findings of all files under ``paths``, in order of file and line.

    ``options``: ``include`` and ``exclude`` of ``discover``, ``jobs``, ``cache`` and ``strict`` of ``convert_path``.
    """
    patterns = {key: options.pop(key) for key in ("include", "exclude") if key in options}
    from migrator.shaken import parted

    named, parts = parted(paths)
    files = discover(named, **patterns)
    if parts or _standing_in(files):
        from migrator.package.follow import followed

        options.pop("cache", None)
        with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
            copies = followed(files, (), Path(directory), parts)
            done = _project_outcomes(copies.files, "analyze", None, track, **options)[1]
        places = {str(copy): str(origin.path) for copy, origin in copies.origins.items()}
        found = [f for outcome in done.values() for f in outcome.findings]
        return files, ordered(replace(f, path=places[f.path]) for f in found)
    done = _project_outcomes(files, "analyze", None, track, **options)[1]
    return files, ordered(f for outcome in done.values() for f in outcome.findings)


def _standing_in(files: Sequence[File]) -> bool:
    """Whether files import parts of libraries that stand here in plain torch."""
    from migrator.package.follow import stand_ins
    from migrator.source import SourceError, read_text

    texts = []
    for file in files:
        try:
            texts.append(read_text(file.path))
        except SourceError:
            continue
    return bool(stand_ins(texts))


def convert_with_stand_ins(
    files: Sequence[File],
    track: Track[File] = _no_progress,
    parts: Mapping[Path, str] | None = None,
) -> Conversion:
    """``convert_files``, with the parts of libraries that stand here in plain torch.

    Args:
      parts: file → what of it is meant, where not all is.
    """
    if not parts and not _standing_in(files):
        return convert_files(files, track)
    from migrator.package.follow import followed

    with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
        copies = followed(files, (), Path(directory), parts)
        return _convert_copies(copies, None, track, (), 1, True)


def convert_files(
    files: Sequence[File],
    track: Track[File] = _no_progress,
    out: Path | None = None,
    **options: Any,
) -> Conversion:
    """Convert files that may import one another; nothing is written.

    Args:
      out: where the result will go; a package that gets another name there imports itself relatively.
      options: ``jobs``, ``cache`` and ``strict`` of ``convert_path``; ``observed``: module → what a run showed there.
    """
    from migrator.package.helpers import helper_modules
    from migrator.package.kept_imports import check_imports
    from migrator.package.members import named_directories

    project, done = _project_outcomes(files, "convert", out, track, **options)
    check_imports(project, done)
    conversion = Conversion(helpers=helper_modules(project, list(done.values())))
    if len(files) > 1 and named_directories(project.members):
        named = files[0].path.resolve().parents[len(files[0].name.parts) - 1]
        if not (named / "__init__.py").is_file():
            # its files import one another relatively now
            conversion.helpers[Path("__init__.py")] = ""
    for file, member in zip(files, project.members, strict=True):
        one = done[member.module]
        text = project.texts[member.module]
        conversion.files.append(Converted(file, text, one.code, tuple(one.findings), one.complete))
    return conversion


def _project_outcomes(
    files: Sequence[File],
    command: str,
    out: Path | None,
    track: Track[Any],
    *,
    jobs: int | None = 1,
    cache: Path | None = None,
    strict: bool = True,
    observed: Mapping[str, Observed] | None = None,
) -> tuple[Project, dict[str, Outcome]]:
    """What becomes of the files of a project by module name, in the order of the files."""
    from migrator.package.members import members, named_directories
    from migrator.package.run import outcomes, read_project
    from migrator.source import read_text

    every = members((file.path, file.name) for file in files)
    cached = _cache_of(files, command, out, cache)
    project = read_project(every, read_text, cached)
    renamed = frozenset(
        top.partition(".")[0]
        for top in named_directories(every)
        if out is not None and top != out.name
    )
    strict = strict or len(files) == 1
    options: dict[str, Any] = {"jobs": jobs, "cached": cached, "strict": strict}
    results = outcomes(project, command, renamed=renamed, observed=observed, **options)
    done = {}
    for _ in track(files, command):
        outcome = next(results)
        done[outcome.module] = outcome
    next(results, None)  # lets it tidy up
    return project, {member.module: done[member.module] for member in every}


def default_cache() -> Path | None:
    """Where results are kept from one run to the next: the user's cache directory, None without one."""
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        folder = (Path(base) if base else Path.home() / ".cache") / "migrate"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK) else None


def _cache_of(
    files: Sequence[File], command: str, out: Path | None, cache: Path | None
) -> Path | None:
    """The directory of the cache for a project; a file alone is not worth one."""
    if cache is None or len(files) < 2:
        return None
    roots = sorted({str(file.path.resolve()).removesuffix(str(file.name)) for file in files})
    target = str(out.resolve()) if out is not None else ""
    return cache / _digest("\0".join([*roots, target]).encode())[:24] / command


def convert_path(
    paths: Iterable[str | Path],
    out: str | Path | None,
    *,
    force: bool = False,
    track: Track[File] = _no_progress,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    jobs: int | None = 1,
    cache: Path | None = None,
    strict: bool = True,
    follow: Sequence[str] = (),
    observe: Sequence[str] = (),
) -> Conversion:
    """Convert the Python files under ``paths`` and write them to ``out``.

    Files that import one another are converted together: what one defines, the others know.

    Args:
      paths: files and directories; ``FILE.py:Name,Other`` takes those definitions of a file and what they need.
      out: a directory, which gets the layout of the sources; or, for one file, a name that ends in ``.py``;
        None writes nothing.
      force: overwrite outputs that were edited since they were generated.
      include, exclude: patterns as in a .gitignore, for files of directories.
      jobs: worker processes; None: as many as there are cores, when there is enough to do.
      cache: directory that keeps results for the next run; None keeps none.
      strict: an error of the program's own ends the run; otherwise it becomes a finding of its file.
      follow: installed libraries of which the imported files are converted as well, ``timm`` or ``timm.layers``.
      observe: cases to run, in a process of its own, for what inference cannot tell; see ``migrator.observe``.

    Raises:
      UserError: unreadable sources, a case that cannot be run, or an output that may not be overwritten (nothing is written then).
    """
    from migrator.package.follow import followed
    from migrator.package.requirements import requirements
    from migrator.shaken import parted

    named, parts = parted(paths)
    files = discover(named, include, exclude)
    notes = requirements(path for path in named if path.is_dir())
    out = None if out is None else Path(out)
    if follow or parts or _standing_in(files):
        with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
            copies = followed(files, follow, Path(directory), parts)
            convert = partial(_convert_copies, copies, out, track, observe, jobs, strict)
            return _written(copies.sources, notes, out, force, convert)
    convert = partial(convert_files, files, track, out, jobs=jobs, cache=cache, strict=strict)
    if observe:
        from migrator.observe.choose import convert_observed

        convert = partial(convert_observed, observe, files, out, jobs=jobs, strict=strict)
    return _written(files, notes, out, force, convert)


_GAP = re.compile(r"\n{4,}")


def _convert_copies(
    copies: Followed,
    out: Path | None,
    track: Track[File],
    observe: Sequence[str],
    jobs: int | None,
    strict: bool,
) -> Conversion:
    """Convert copies of files, and of what they reach of libraries, and say where each comes from."""
    from migrator.source import read_text

    if observe:
        from migrator.observe.choose import convert_observed

        done = convert_observed(observe, copies.files, out, copies=copies, jobs=jobs, strict=strict)
    else:
        done = convert_files(copies.files, track, out, jobs=jobs, strict=strict)
    for i, one in enumerate(done.files):
        origin = copies.origins[one.file.path]
        findings = tuple(replace(f, path=str(origin.path)) for f in one.findings)
        done.files[i] = replace(one, file=origin, findings=findings)
        if one.file.path in copies.shortened:
            code = _GAP.sub("\n\n\n", one.code.strip("\n") + "\n")
            text, part = read_text(origin.path), one.source
            done.files[i] = replace(done.files[i], source=text, part=part, code=code)
    return done


def _written(
    files: Sequence[File],
    notes: list[Finding],
    out: Path | None,
    force: bool,
    convert: Callable[[], Conversion],
) -> Conversion:
    """Convert and write, unless an output may not be overwritten."""
    if out is None:
        conversion = convert()
        conversion.notes = notes
        return conversion
    targets = _targets(files, out)
    directory = out.parent if out.suffix == ".py" else out
    manifest = Manifest(directory)
    _refuse(manifest, targets, force)
    conversion = convert()
    conversion.notes = notes
    helpers = {directory / name: code for name, code in conversion.helpers.items()}
    _refuse(manifest, list(helpers), force)
    codes = {target: one.code for one, target in zip(conversion.files, targets, strict=True)}
    if out.suffix == ".py":  # one file, and what goes beside it may go beside others as well
        beside = {*codes, *helpers} - {out}
        for target in sorted(beside):
            made = codes if target in codes else helpers
            made[target] = manifest.shared(target, made[target], out)
    for target in targets:
        write_text(target, codes[target])
        manifest.record(target, codes[target])
        conversion.written.append(target)
    for target, code in helpers.items():
        write_text(target, code)
        manifest.record(target, code)
    manifest.save()
    return conversion


def _refuse(manifest: Manifest, targets: Iterable[Path], force: bool) -> None:
    """Raise UserError where a target may not be overwritten."""
    problems = [p for target in targets if (p := manifest.problem(target))]
    if problems and not force:
        raise UserError(
            f"{'; '.join(problems)}; --force overwrites, --diff only shows, and another OUT leaves it alone"
        )


# --- writing -----------------------------------------------------------------------------------------


def _targets(files: Sequence[File], out: Path) -> list[Path]:
    """Where each file goes; UserError where that is impossible or would lose a file."""
    if out.suffix == ".py":
        beside = [len(f.name.parts) > 1 and f.name.parts[0].endswith("_flax") for f in files]
        if beside.count(False) > 1:  # the copy of a library stands beside the one file
            raise UserError(f"{out}: one file cannot hold {len(files)}; name a directory")
        targets = [out.parent / f.name if b else out for f, b in zip(files, beside, strict=True)]
    elif out.exists() and not out.is_dir():
        raise UserError(f"{out}: exists and is no directory")
    else:
        targets = [out / file.name for file in files]
    _check_writable(out)
    resolved = Resolved()
    sources = {resolved(file.path) for file in files}
    taken: dict[Path, File] = {}
    for file, target in zip(files, targets, strict=True):
        if resolved(target) in sources:
            raise UserError(f"{target}: is a source; choose an output outside the sources")
        if first := taken.get(target):
            raise UserError(f"{first.path} and {file.path} would both be written to {target}")
        taken[target] = file
    return targets


def _check_writable(out: Path) -> None:
    """Raise UserError where nothing can be written, before there is anything to write."""
    above = out
    while not above.exists() and above != above.parent:
        above = above.parent
    if above != out and not above.is_dir():
        raise UserError(f"{out}: cannot be written: {above} is no directory")
    if not os.access(above, os.W_OK):
        raise UserError(f"{out}: cannot be written: permission denied")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Manifest:
    """What ``convert`` wrote into a directory: file → SHA-256 of its content then."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / MANIFEST

    @cached_property
    def files(self) -> dict[str, str]:
        try:
            return dict(json.loads(self.path.read_text(encoding="utf-8"))["files"])
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise UserError(f"{self.path}: cannot be read ({error}); delete it") from error

    def _name(self, target: Path) -> str:
        return target.relative_to(self.directory).as_posix()

    def problem(self, target: Path) -> str | None:
        """Why an existing output should not be overwritten, None when it may be."""
        if target.is_dir():
            return f"{target} is a directory"
        if not target.exists():
            return None
        known = self.files.get(self._name(target))
        if known is None:
            return f"{target} exists and was not written by migrate"
        if known != _digest(target.read_bytes()):
            return f"{target} was edited since it was generated"
        return None

    def record(self, target: Path, text: str) -> None:
        self.files[self._name(target)] = _digest(text.encode())

    @cached_property
    def owners(self) -> dict[str, list[str]]:
        """File of a copied library → the converted files that it was written for, one by one."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        found = content.get("owners") if isinstance(content, dict) else None
        if not isinstance(found, dict):
            return {}
        return {name: several for name, several in found.items() if isinstance(several, list)}

    def shared(self, target: Path, text: str, owner: Path) -> str:
        """What to write to a file of a copied library for a converted file, so that it serves the others there, too.

        Raises:
          UserError: another file needs other parts of it.
        """
        from migrator.shared_copies import merged

        name, mine = self._name(target), self._name(owner)
        before = self.owners.get(name, [])
        self.owners[name] = sorted({*before, mine})
        others = [one for one in before if one != mine and (self.directory / one).exists()]
        if not others or not target.exists() or name not in self.files:
            return text
        old = target.read_text(encoding="utf-8")
        if old == text:
            return text
        several = target.name in ("_torch_compat.py", "__init__.py")
        both = merged(old, text) if several else None
        if both is None:
            advice = "convert the files in one run, or into directories of their own"
            raise UserError(f"{target} holds other parts for {', '.join(others)}: {advice}")
        return both

    def save(self) -> None:
        content: dict[str, Any] = {"version": 1, "files": dict(sorted(self.files.items()))}
        if self.owners:
            content["owners"] = dict(sorted(self.owners.items()))
        write_text(self.path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that a reader sees the old or the new content."""
    temporary = f"{path.parent / f'.{path.name}.'}{os.urandom(6).hex()}"
    try:
        try:
            handle = os.open(temporary, _NEW, 0o666)
        except FileNotFoundError:  # which is so for one file of a directory alone
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(temporary, _NEW, 0o666)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        with suppress(FileNotFoundError):
            os.chmod(temporary, path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise UserError(f"{path}: cannot be written: {error.strerror}") from error


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
"""How a file is opened that nobody else may have made, not even as a link to another one."""
