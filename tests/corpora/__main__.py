"""Convert a published library and compare its architectures with torch.

    python -m tests.corpora --library timm --seed 2026 --work build/corpora [NAME]...

The library is looked for where Python looks for packages (PYTHONPATH). Each architecture runs in a process of its own,
with limits; each has a line in ``WORK/LIBRARY.jsonl``, and one that has it is not run again, unless ``--again`` names
its outcome. ``--record`` writes the lines to the record from which docs/corpora.md is made.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from migrator.project import convert_path
from tests.corpora.libraries import LIBRARIES, Library
from tests.corpora.page import PAGE, page, save_record, status
from tests.corpora.processes import Limits, outcomes

ROOT = Path(__file__).resolve().parents[2]
SEED = 2026


def convert(library: Library, work: Path) -> Path:
    """Convert the library below ``work``; its findings are in ``findings.json`` beside it."""
    directory = work / library.name
    made = convert_path(
        [library.root],
        directory / f"{library.name}_flax",
        include=library.include,
        exclude=library.exclude,
        force=True,
        jobs=1,
        strict=False,
        cache=work / "cache",
    )
    found = [finding.to_dict() for finding in made.findings]
    (directory / "findings.json").write_text(json.dumps(found), encoding="utf-8")
    complete = sum(one.complete for one in made.files)
    print(f"{library.name}: {complete} of {len(made.files)} files are complete", flush=True)
    return directory


def read(file: Path) -> dict[str, dict[str, Any]]:
    """The records so far, by name."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {one["name"]: one for one in map(json.loads, lines)}


def wanted(names: Sequence[str], done: dict[str, Any], again: Sequence[str]) -> Iterator[str]:
    """The architectures that are still to be run."""
    for name in names:
        if name not in done or any(word in status(done[name]) for word in again):
            yield name


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--library", choices=LIBRARIES, required=True)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "corpora")
    parser.add_argument("--again", action="append", default=[], help="outcomes to run again")
    parser.add_argument(
        "--converted", action="store_true", help="take the conversion that is there"
    )
    parser.add_argument(
        "--record", action="store_true", help="write the record and docs/corpora.md"
    )
    parser.add_argument("--outputs", action="store_true", help="compare outputs only, not training")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    library, work = LIBRARIES[options.library], options.work.resolve()
    file = work / f"{library.name}.jsonl"
    directory = work / library.name if options.converted else convert(library, work)
    names = library.names(options.seed, options.count)
    done = read(file)
    left = options.names or list(wanted(names, done, options.again))

    limits = Limits(options.seconds, options.gigabytes, not options.outputs)
    for record in outcomes(library, left, directory, limits, options.jobs):
        done[record["name"]] = record
        with file.open("a", encoding="utf-8") as log:
            print(json.dumps(record), file=log)
        print(f"{record['name']}: {status(record)} {record.get('why', '')}", flush=True)
    if options.record:
        save_record(library.name, [done[name] for name in names if name in done])
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
