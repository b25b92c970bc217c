"""How many planted faults verify finds, and at the right submodule (``python -m benchmarks.power [CASE]...``).

The faults are those of tests/faults.py; every line is one of them, the last the counts.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

from migrator.config import Config, load_config
from migrator.verifying import keep_compilations, verify_case
from numerics.report import Report
from tests.faults import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[1]


def planted(fault: Fault, directory: Path, config: Config, examples: int = 12) -> Report:
    """The report on a sample whose port has the fault; its files are written below ``directory``."""
    output = directory / "flax"
    if output.exists():
        shutil.rmtree(output)
    shutil.copytree(ROOT / "samples" / "flax", output)
    case = next(case for case in config.cases if case.name == fault.case)
    port = output / Path(case.torch.partition(":")[0]).name
    port.write_text(fault.plant(port.read_text()))
    kwargs = {**case.init_kwargs, **fault.init}
    case = replace(case, init_kwargs=kwargs, examples=examples)
    return verify_case(case, replace(config, output=output), shrink_seconds=0)


def found(report: Report) -> bool:
    """Whether the fault was seen."""
    return report.verdict in ("different", "raises")


def placed(report: Report, fault: Fault) -> bool:
    """Whether it was seen where it is."""
    return report.first_divergence is not None and fnmatch(report.first_divergence, fault.submodule)


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
