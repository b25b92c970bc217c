"""Runs over all files of a project: scan, order, and the components at work in processes, cached by content."""

from __future__ import annotations

import gc
import hashlib
import heapq
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from migrator.findings import INTERNAL, Finding
from migrator.infer.observed import Observed
from migrator.package.build import (
    Builder,
    Job,
    Outcome,
    Setting,
    Store,
    read_elsewhere,
    start,
    work,
)
from migrator.package.members import HelperPlan, Member, helper_plan, other_names
from migrator.package.scan import Scan, scan
from migrator.package.table import Table
from migrator.source import SourceError

LINES_PER_PROCESS = 4000
"""Below this much source a further process costs more than it gains."""

SELDOM = 100_000
"""New objects after which the garbage collector looks for cycles among them."""


@dataclass
class Project:
    """The files of a project, read and outlined.

    Attributes:
      texts: module → source.
      keys: module → hash of its text.
      unread: module → why its file is no text; its text is empty.
    """

    members: Sequence[Member]
    texts: dict[str, str]
    table: Table
    plan: HelperPlan
    keys: dict[str, str] = field(default_factory=dict)
    unread: dict[str, Finding] = field(default_factory=dict)


def read_project(
    every: Sequence[Member], read: Callable[[str], str], cached: Path | None
) -> Project:
    """Read and outline files.

    Args:
      read: gives the text of a path.
      cached: directory of the outlines of an earlier run.

    Raises:
      SourceError: the only file is no text; where there are more it is left aside.
    """
    texts, unread = _read_all(every, read)
    keys = {m: digest(text if m not in unread else repr(unread[m])) for m, text in texts.items()}
    known = _read_json(cached / "outlines.json") if cached is not None else {}
    known = known if known.get("tool") == tool_digest() else {}
    outlines = {key: known.get("scans", {}).get(key) for key in keys.values()}
    scans: dict[str, Scan] = {}
    for module, key in keys.items():
        data = outlines[key]
        scans[module] = Scan.from_dict(data) if data is not None else scan(texts[module])
        if data is None:
            outlines[key] = scans[module].to_dict()
    if cached is not None:
        cached.mkdir(parents=True, exist_ok=True)
        write_json(cached / "outlines.json", {"tool": tool_digest(), "scans": outlines})
    packages = frozenset(member.module for member in every if member.package)
    table = Table(scans, packages, other_names(every))
    return Project(every, texts, table, helper_plan(every, table), keys, unread)


def _read_all(
    every: Sequence[Member], read: Callable[[str], str]
) -> tuple[dict[str, str], dict[str, Finding]]:
    """The texts of files, and why some are none."""
    texts: dict[str, str] = {}
    unread: dict[str, Finding] = {}
    for member in every:
        try:
            texts[member.module] = read(member.path)
        except SourceError as error:
            if len(every) == 1:
                raise
            texts[member.module], unread[member.module] = "", error.finding
    return texts, unread


def outcomes(
    project: Project,
    command: str,
    *,
    renamed: frozenset[str] = frozenset(),
    jobs: int | None = 1,
    cached: Path | None = None,
    strict: bool = True,
    observed: Mapping[str, Observed] | None = None,
) -> Iterator[Outcome]:
    """What becomes of each file, in the order in which they are done.

    Args:
      command: "convert" or "analyze".
      renamed: top-level packages with another name in the output.
      jobs: worker processes; None chooses by the cores and the amount of source.
      cached: directory of the outcomes of an earlier run, None to keep none.
      strict: an error of the program's own ends the run; otherwise it becomes a finding of its file.
      observed: module → what a run of the original showed there.
    """
    with _directory(cached) as store:
        setting = Setting(
            dict(project.table.scans),
            project.table.packages,
            project.table.aliases,
            project.plan.source if command == "convert" else {},
            renamed,
            command,
            str(store),
            strict,
            observed or {},
            project.unread,
            project.table.reached(),
        )
        schedule = _Schedule(project, setting, cached is not None)
        number = _processes(project, jobs, schedule)
        if number > 1:
            yield from _spread(schedule, setting, number)
        else:
            yield from _alone(schedule, setting)


class _Schedule:
    """Which component may be worked on next, and what an earlier run left of it."""

    def __init__(self, project: Project, setting: Setting, cached: bool) -> None:
        self.project = project
        self.setting = setting
        self.cached = cached
        self.store = Store(Path(setting.store))
        self.paths = {member.module: member.path for member in project.members}
        table = project.table
        self.components = table.components()
        place = {module: i for i, group in enumerate(self.components) for module in group}
        self.needs = [
            {place[d] for module in group for d in table.needs(module)} - {i}
            for i, group in enumerate(self.components)
        ]
        self.users: list[set[int]] = [set() for _ in self.components]
        for i, needed in enumerate(self.needs):
            for one in needed:
                self.users[one].add(i)
        self.weight = self._weights()
        self.waiting = [len(needed) for needed in self.needs]
        self.digests: dict[str, str] = {}
        self.ready = [(-self.weight[i], i) for i, n in enumerate(self.waiting) if not n]
        heapq.heapify(self.ready)

    @cached_property
    def outside(self) -> dict[str, list[str]]:
        """For each file those of its names that others hand on as values, or read."""
        table = self.project.table
        found: dict[str, list[str]] = {module: [] for module in table.scans}
        for kind, names in (("!", table.handed_on()), ("?", read_elsewhere(table))):
            for qualified in names:
                module, _, name = qualified.rpartition(".")
                if module in found:
                    found[module].append(name + kind)
        return {module: sorted(several) for module, several in found.items()}

    def _weights(self) -> list[int]:
        """The longest way of source from each component to the end: what is on it goes first."""
        found = [0] * len(self.components)
        for i in range(len(self.components) - 1, -1, -1):
            own = sum(len(self.project.texts[m]) for m in self.components[i])
            found[i] = own + max((found[user] for user in self.users[i]), default=0)
        return found

    def next(self) -> tuple[int, Job] | list[Outcome] | None:
        """A component to work on, or what the cache has of one; None when none is ready."""
        if not self.ready:
            return None
        _, i = heapq.heappop(self.ready)
        known = self._known(i) if self.cached else None
        if known is not None:
            self.finish(i, known)
            return known
        texts = self.project.texts
        return i, Job(tuple((m, self.paths[m], texts[m]) for m in self.components[i]))

    def finish(self, i: int, done: Sequence[Outcome], fresh: bool = False) -> None:
        """Take a component off the list; what waited for it alone becomes ready."""
        for outcome in done:
            self.digests[outcome.module] = outcome.digest
            internal = any(finding.rule == INTERNAL for finding in outcome.findings)
            if fresh and self.cached and not internal:
                data = {"key": self._key(i, outcome.module), **outcome.to_dict()}
                write_json(self.store.place(outcome.module, self.setting.command), data)
        for user in self.users[i]:
            self.waiting[user] -= 1
            if not self.waiting[user]:
                heapq.heappush(self.ready, (-self.weight[user], user))

    def _known(self, i: int) -> list[Outcome] | None:
        found = []
        for module in self.components[i]:
            data = _read_json(self.store.place(module, self.setting.command))
            if data.pop("key", None) != self._key(i, module):
                return None
            path = self.store.place(module, "summary")
            if not data["digest"] and module not in self.setting.reached:
                pass
            elif not path.is_file() or digest(path.read_text(encoding="utf-8")) != data["digest"]:
                return None
            found.append(Outcome.from_dict(data))
        return found

    def _key(self, i: int, module: str) -> str:
        """Everything that a file's outcome depends on."""
        table, group = self.project.table, self.components[i]
        imports = [
            (name, repr(one), repr(table.imported(m, one)))
            for m in group
            for name, one in table.scans[m].imports()
        ]
        below = table.below[group[0]]
        return digest(
            json.dumps(
                [
                    tool_digest(),
                    module,
                    [[m, self.project.keys[m], self.paths[m], self.outside[m]] for m in group],
                    sorted(imports),
                    [
                        repr((s, table.literal(s)))
                        for m in group
                        for s in sorted(set(table.reads(m)), key=repr)
                    ],
                    sorted((m, self.digests[m]) for m in below),
                    [self.setting.helpers.get(m, "") for m in group],
                    sorted(self.setting.renamed),
                    table.traverses,
                    table.hands_makers,
                    table.keeps_makers,
                    sorted(table.derived),
                    table.emptied_digest,
                    [[table.lists_dicts(m), sorted(table.listed(m))] for m in group],
                    [sorted(table.given_out(m)) for m in group],
                    [sorted(table.registered_elsewhere(m)) for m in group],
                    [sorted(table.in_place(m)) for m in group],
                    [sorted(table.asked(m) & {"*", *table.scans[m].bindings}) for m in group],
                    [repr(self.setting.observed.get(m)) for m in group],
                ]
            )
        )


def _alone(schedule: _Schedule, setting: Setting) -> Iterator[Outcome]:
    builder: Builder | None = None
    with settled():
        while (item := schedule.next()) is not None:
            if isinstance(item, list):
                yield from item
                continue
            builder = builder if builder is not None else Builder(setting, schedule.cached)
            done = _named(builder.build, item[1])
            schedule.finish(item[0], done, fresh=True)
            yield from done


@contextmanager
def settled() -> Iterator[None]:
    """What is there at the start of a run stays: the garbage collector need not look at it time and again.

    It looks at the rest seldom: a file leaves few cycles behind.
    """
    if gc.get_freeze_count():  # the caller's business
        yield
        return
    often = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(SELDOM, *often[1:])
    try:
        yield
    finally:
        gc.set_threshold(*often)
        gc.unfreeze()


def _named(build: Callable[[Job], list[Outcome]], job: Job) -> list[Outcome]:
    """Says in which file an error that is none of the user's happened."""
    try:
        return build(job)
    except Exception as error:
        error.add_note(f"in {', '.join(path for _, path, _ in job.files)}")
        raise


def named_work(job: Job) -> list[Outcome]:
    """``work`` in a process, with the name of the file in its errors."""
    return _named(work, job)


def _spread(schedule: _Schedule, setting: Setting, number: int) -> Iterator[Outcome]:
    # a forked worker needs no import of the caller's script, and nothing of its own
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(number, context, initializer=start, initargs=(setting,))
    running: dict[Future[list[Outcome]], int] = {}
    with pool:
        try:
            while True:
                while len(running) < 2 * number and (item := schedule.next()) is not None:
                    if isinstance(item, list):
                        yield from item
                        continue
                    running[pool.submit(named_work, item[1])] = item[0]
                if not running:
                    break
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    done = future.result()
                    schedule.finish(running.pop(future), done, fresh=True)
                    yield from done
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _processes(project: Project, jobs: int | None, schedule: _Schedule) -> int:
    if jobs is not None:
        return min(jobs, len(schedule.components))
    lines = sum(text.count("\n") for text in project.texts.values())
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min(cores, lines // LINES_PER_PROCESS))


@contextmanager
def _directory(cached: Path | None) -> Iterator[Path]:
    if cached is not None:
        cached.mkdir(parents=True, exist_ok=True)
        yield cached
        return
    with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
        yield Path(directory)


# --- files of the cache ----------------------------------------------------------------------------------------------


def digest(text: str) -> str:
    """A content hash."""
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def tool_digest() -> str:
    """A hash of the program itself: another version of it has no use for what this one cached."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for folder in ("migrator", "rules"):
        for path in sorted((root / folder).rglob("*.py")):
            found.update(path.relative_to(root).as_posix().encode())
            found.update(path.read_bytes())
    return found.hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file of the cache under a temporary name and rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(data, separators=(",", ":")), encoding="utf-8")
    temporary.replace(path)
