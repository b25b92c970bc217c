"""Examples that failed, kept between runs and tried first in the next."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.config import Case

if TYPE_CHECKING:
    from numerics.inputs import Example
    from numerics.report import Report

_KEPT = 5


def cache_directory() -> Path:
    """Where things are kept that a second run need not do again."""
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "migrate"


def _file(case: Case) -> Path:
    place = f"{case.root.resolve()}\0{case.name}\0{case.torch}"
    return (
        cache_directory() / "failures" / f"{hashlib.sha256(place.encode()).hexdigest()[:24]}.json"
    )


def load(case: Case) -> tuple[Example, ...]:
    """The case's examples that failed when it was last verified; none where nothing can be read."""
    from numerics.inputs import Example

    try:
        entries = json.loads(_file(case).read_text(encoding="utf-8"))
        return tuple(
            Example(**{**entry, "sizes": tuple((str(n), int(s)) for n, s in entry["sizes"])})
            for entry in entries
        )
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def save(case: Case, report: Report) -> None:
    """Keep the example that fails; forget them all when the case is equal."""
    file = _file(case)
    try:
        if report.ok:
            file.unlink(missing_ok=True)
        elif report.failure is not None and report.failure.check != "load":
            kept = dict.fromkeys([report.failure.example, *load(case)])
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps([asdict(example) for example in list(kept)[:_KEPT]]))
    except OSError:
        return  # a home that cannot be written to costs time, nothing else
