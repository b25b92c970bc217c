"""How many planted faults verify finds, and at the right submodule (``python -m benchmarks.power [CASE]...``).

The faults are those of tests/faults.py; every line is one of them, the last the counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from migrator.config import load_config
from migrator.verifying import keep_compilations
from tests.faults import FAULTS, found, placed, planted

ROOT = Path(__file__).resolve().parents[1]


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--name", help="only faults with this in their name")
    options = parser.parse_args(argv)
    keep_compilations()
    config = load_config(ROOT / "pyproject.toml")
    chosen = [f for f in FAULTS if not options.cases or f.case in options.cases]
    chosen = [f for f in chosen if not options.name or options.name in f.name]
    seen = right = 0
    with tempfile.TemporaryDirectory() as directory:
        for fault in chosen:
            started = time.perf_counter()
            report = planted(fault, Path(directory), config)
            seen, right = seen + found(report), right + placed(report, fault)
            words = [
                "" if found(report) else "NOT SEEN",
                "" if placed(report, fault) else "ELSEWHERE",
            ]
            failure = report.failure
            print(
                f"{fault.case:15} {fault.name:32} {report.verdict:10} "
                f"{report.first_divergence!r:28} {failure.check if failure else '':16}"
                f" {report.examples:3} {time.perf_counter() - started:5.1f} s {' '.join(words)}",
                *([*report.notes, str(failure or "")[:200]] if any(words) else []),
                flush=True,
            )
    print(f"{seen} of {len(chosen)} found, {right} at the right submodule")


if __name__ == "__main__":
    main()
