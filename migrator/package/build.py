"""Works on the files of one component: finds their kinds, converts or analyzes them, and sums them up."""

from __future__ import annotations

import gc
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from migrator.errors import UserError
from migrator.findings import INTERNAL, Finding
from migrator.infer.observed import Observed
from migrator.package.link import Link
from migrator.package.scan import Scan
from migrator.package.summary import Data, summarize
from migrator.package.table import Table
from rules.definitions import ROOT


@dataclass(frozen=True)
class Setting:
    """What all components of a run share; it is sent to every worker once.

    Attributes:
      scans, packages, aliases: as for ``Table``.
      helpers: module → the module it imports helpers from.
      renamed: top-level packages with another name in the output.
      command: "convert" or "analyze".
      store: directory of the summaries.
      strict: an error of the program's own ends the run; otherwise it becomes a finding of its file.
      observed: module → what a run of the original showed there.
      unread: module → why its file is no text.
      reached: the files of which others may read the summary.
    """

    scans: dict[str, Scan]
    packages: frozenset[str]
    aliases: dict[str, str]
    helpers: dict[str, str]
    renamed: frozenset[str]
    command: str
    store: str
    strict: bool = True
    observed: Mapping[str, Observed] = field(default_factory=dict)
    unread: Mapping[str, Finding] = field(default_factory=dict)
    reached: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Job:
    """The files of one component: module, path and text of each."""

    files: tuple[tuple[str, str, str], ...]


@dataclass
class Outcome:
    """What became of one file.

    ``helpers`` are the rule definitions it imports from the shared module: file below ``rules/``, name, and
    whether it is used as a factory. ``digest`` is that of its summary, empty where nobody reads it and none is made.
    ``names`` are what the top of the code binds, None where that was not looked for.
    """

    module: str
    code: str
    findings: list[Finding]
    complete: bool
    helpers: list[tuple[str, str, bool]] = field(default_factory=list)
    digest: str = ""
    names: list[str] | None = None

    def to_dict(self) -> Data:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Data) -> Outcome:
        """What ``to_dict`` gave."""
        made = cls(**data)
        made.findings = [Finding(**one) for one in data["findings"]]
        made.helpers = [(path, name, factory) for path, name, factory in data["helpers"]]
        return made


class Store:
    """The summaries of a run in a directory, so that workers find those of each other.

    ``shared``: whether anybody else looks for them there, another worker or a later run.
    """

    def __init__(self, directory: Path, shared: bool = True) -> None:
        self.directory = directory
        self.shared = shared
        self._read: dict[str, Data] = {}

    def place(self, module: str, what: str) -> Path:
        """The file of a module's summary or outcome."""
        return self.directory / f"{module}.{what}.json"

    def summary(self, module: str) -> Data:
        """The summary of a file that is done."""
        if module not in self._read:
            text = self.place(module, "summary").read_text(encoding="utf-8")
            self._read[module] = json.loads(text)
        return self._read[module]

    def write_summary(self, module: str, summary: Data) -> str:
        """Keep a summary; returns its digest."""
        text = json.dumps(summary, separators=(",", ":"), sort_keys=True)
        if self.shared:
            self.place(module, "summary").write_text(text, encoding="utf-8")
        self._read[module] = json.loads(
            text
        )  # what a worker reads and what a later run reads is the same
        return hashlib.sha256(text.encode()).hexdigest()


class Builder:
    """Works on components, one after another, in one process."""

    def __init__(self, setting: Setting, shared: bool = True) -> None:
        from migrator.convert.passes import load

        load()
        self.setting = setting
        self.store = Store(Path(setting.store), shared)
        self.table = Table(setting.scans, setting.packages, setting.aliases)
        self.handed_on = self.table.handed_on()
        self.read = read_elsewhere(self.table)

    def build(self, job: Job) -> list[Outcome]:
        """Work on a component whose dependencies are done."""
        from migrator.convert import uncollected

        with uncollected():
            return self._built(job)  # its trees are gone when the collector may look again

    def _built(self, job: Job) -> list[Outcome]:
        sources, unread = self._parsed(job)
        if not sources:
            return unread
        together = frozenset(source.module for source in sources)
        renamed = self.setting.renamed
        link = Link(self.table, self.store.summary, self.handed_on, self.read, renamed, together)
        try:
            if self.setting.command == "convert":
                return unread + _converted(sources, link, self.setting, self.store)
            return unread + _analyzed(sources, link, self.setting, self.store)
        except UserError:
            raise
        except Exception as error:
            if self.setting.strict:
                raise
            return unread + [_failed(source, error, self.store) for source in sources]

    def _parsed(self, job: Job) -> tuple[list[Any], list[Outcome]]:
        """The files of a component, and what becomes of those that are no Python.

        Raises:
          SourceError: the only file of the run is none.
        """
        from migrator.source import Source, SourceError

        sources: list[Any] = []
        unread: list[Outcome] = []
        for module, path, text in job.files:
            finding = self.setting.unread.get(module)
            if finding is None:
                try:
                    sources.append(Source(text, path, module))
                    continue
                except SourceError as error:
                    if len(self.setting.scans) == 1:
                        raise
                    finding = error.finding
            unread.append(_unread(Source("", path, module), text, finding, self.store))
        return sources, unread


def read_elsewhere(table: Table) -> frozenset[str]:
    """Qualified names of the definitions that other files read."""
    return frozenset(
        f"{symbol.module}.{symbol.name}"
        for module in table.scans
        for symbol in table.reads(module)
        if symbol.kind == "own" and symbol.module != module
    )


def _converted(sources: Sequence[Any], link: Link, setting: Setting, store: Store) -> list[Outcome]:
    from migrator.convert import convert_together
    from migrator.convert.layout import bound_at_top
    from migrator.findings import ordered

    found = []
    made = convert_together(sources, link, setting.helpers, setting.observed)
    for source, (result, ctx) in zip(sources, made, strict=True):
        wanted = ctx.helpers.wanted.values() if ctx.helpers.elsewhere else ()
        used = [
            (file.path.relative_to(ROOT).as_posix(), name, name in ctx.helpers.factories)
            for file, name in wanted
        ]
        digest = ""
        if source.module in setting.reached:
            digest = store.write_summary(source.module, summarize(ctx, source.module))
        found.append(
            Outcome(
                source.module,
                result.code,
                ordered(result.findings),
                result.complete,
                sorted(used),
                digest,
                bound_at_top(ctx.names_made) if len(setting.scans) > 1 else None,
            )
        )
    for _, ctx in made:  # they share what they know: not before the last is summed up
        ctx.release()
    return found


def _analyzed(sources: Sequence[Any], link: Link, setting: Setting, store: Store) -> list[Outcome]:
    from migrator.analyze import findings_of
    from migrator.analyze.agreement import agreed
    from migrator.convert import convert_together

    found = []
    made = convert_together(sources, link, setting.helpers)
    for source, (result, ctx) in zip(sources, made, strict=True):
        findings = agreed(source, findings_of(source, ctx.facts, ctx.flagged), result.findings)
        digest = ""
        if source.module in setting.reached:
            digest = store.write_summary(source.module, summarize(ctx, source.module))
        found.append(Outcome(source.module, "", findings, not findings, [], digest))
    for _, ctx in made:
        ctx.release()
    return found


def _failed(source: Any, error: Exception, store: Store) -> Outcome:
    """A file in which the program itself failed: it stays as it is, and nothing is known of it elsewhere."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    what = f"internal error, the file is left as it is: {text}"
    advice = "report it; --debug shows where"
    place = (1, 1, 1, 1, source.path)
    finding = Finding(INTERNAL, what, "error", *place, advice, effort=0.5, blocks=True)
    code = f"# TODO(migrate): {INTERNAL} {what}\n{source.text}"
    return _left(source, code, finding, store)


def _unread(empty: Any, text: str, finding: Finding, store: Store) -> Outcome:
    """A file that is no Python: its text is kept as a comment, and whoever imports it hears why."""
    what = f"the source cannot be read, line {finding.line}: {finding.message}"
    own = re.split(r"\r\n?|\n", text.replace("\0", ""))
    # a line that names an encoding counts in the first two of a file: there it would be taken for the comment's
    lines = [f"# TODO(migrate): {finding.rule} {what}", "#", *(f"# {line}" for line in own)]
    code = "\n".join(line.rstrip() for line in lines)
    return _left(empty, f"{code}\nraise NotImplementedError({what!r})\n", finding, store)


def _left(source: Any, code: str, finding: Finding, store: Store) -> Outcome:
    """A file that is not worked on."""
    from migrator.convert.context import Context
    from migrator.infer import Facts

    facts = Facts(source.index, module=source.module)
    digest = store.write_summary(source.module, summarize(Context(source, facts), source.module))
    return Outcome(source.module, code, [finding], False, [], digest)


_builder: Builder | None = None


def start(setting: Setting) -> None:
    """Prepare a worker process."""
    global _builder
    _builder = Builder(setting)
    gc.freeze()  # what is there stays to the end: the collector need not look at it time and again


def work(job: Job) -> list[Outcome]:
    """Work on a component in a worker process."""
    assert _builder is not None
    return _builder.build(job)
