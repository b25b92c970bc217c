"""Examples that failed, kept in a hypothesis database between runs and tried first in the next."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.config import Case

if TYPE_CHECKING:
    from hypothesis.database import ExampleDatabase

    from numerics.inputs import Example
    from numerics.report import Report

_KEPT = 5


def cache_directory() -> Path:
    """Where things are kept that a second run need not do again."""
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "migrate"


def _database() -> ExampleDatabase:
    """hypothesis' own, one for all cases."""
    from hypothesis.database import DirectoryBasedExampleDatabase

    return DirectoryBasedExampleDatabase(cache_directory() / "failures")


def _key(case: Case) -> bytes:
    return f"{case.root.resolve()}\0{case.name}\0{case.torch}".encode()


def load(case: Case) -> tuple[Example, ...]:
    """The case's examples that failed when it was last verified, simplest first; what cannot be read is left out."""
    try:
        entries = list(_database().fetch(_key(case)))
    except OSError:
        return ()
    return tuple(sorted(example for entry in entries if (example := _example(entry)) is not None))


def _example(entry: bytes) -> Example | None:
    from numerics.inputs import Example

    try:
        fields = json.loads(entry)
        return Example(**{**fields, "sizes": tuple((str(n), int(s)) for n, s in fields["sizes"])})
    except (ValueError, TypeError, KeyError):
        return None


def _entry(example: Example) -> bytes:
    return json.dumps(asdict(example), sort_keys=True).encode()


def save(case: Case, report: Report) -> None:
    """Keep the example that fails; forget them all when the case is equal."""
    database, key = _database(), _key(case)
    try:
        earlier = list(database.fetch(key))
        failure = report.failure
        keep = set() if report.ok else set(earlier)
        if failure is not None and failure.check != "load":
            newest = _entry(failure.example)
            keep = {newest, *sorted(keep)[: _KEPT - 1]}
        for entry in set(earlier) - keep:
            database.delete(key, entry)
        for entry in keep - set(earlier):
            database.save(key, entry)
    except OSError:
        return  # a home that cannot be written to costs time, nothing else
