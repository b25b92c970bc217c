"""Conversion speed against libcst alone, and start-up against importing click; exit status 1 below target.

python benchmarks/convert_speed.py [PATH...]        # samples/ when no path is given
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import libcst as cst

from migrator import convert_source
from migrator.project import discover
from migrator.source import read_text

SPEED_TARGET = 0.5
STARTUP_TARGET = 3.0
ROOT = Path(__file__).parent.parent


def best(
    *works: Callable[[], object], repeats: int, clock: Callable[[], float]
) -> tuple[float, ...]:
    """Seconds of the fastest of several runs of each: the one least disturbed by others on the machine.

    They take turns, so that a processor which changes its pace does so for all."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, found in zip(works, times, strict=True):
            start = clock()
            work()
            found.append(clock() - start)
    return tuple(map(min, times))


def conversion(paths: Sequence[str], repeats: int = 9) -> float:
    """Print lines per second for both, file by file in total, and return the ratio."""
    texts = {file.path: read_text(file.path) for file in discover(paths)}
    lines = sum(text.count("\n") for text in texts.values())
    alone = convert = 0.0
    for path, text in texts.items():
        convert_source(text, path=str(path))  # reads the rules once
        reference, ours = best(
            lambda text=text: cst.parse_module(text).code,  # type: ignore[misc]
            partial(convert_source, text, path=str(path)),
            repeats=repeats,
            clock=time.process_time,
        )
        alone += reference
        convert += ours
    print(f"{len(texts)} files, {lines} lines, one core")
    print(f"  libcst parse + write   {lines / alone:10,.0f} lines/s")
    print(f"  convert                {lines / convert:10,.0f} lines/s")
    print(f"  ratio                  {alone / convert:10.2f}   (target: at least {SPEED_TARGET})")
    return alone / convert


def startup(repeats: int = 10) -> float:
    """Print and return how many times longer ``migrate --help`` takes than importing click."""

    def run(*arguments: str) -> Callable[[], object]:
        return partial(
            subprocess.run, [sys.executable, *arguments], check=True, capture_output=True
        )

    click, migrate = best(
        run("-c", "import click"),
        run("-m", "migrator", "--help"),
        repeats=repeats,
        clock=time.perf_counter,
    )
    print(f"start-up: import click {click * 1e3:.0f} ms, migrate --help {migrate * 1e3:.0f} ms")
    print(f"  ratio                  {migrate / click:10.2f}   (target: at most {STARTUP_TARGET})")
    return migrate / click


if __name__ == "__main__":
    speed = conversion(sys.argv[1:] or [str(ROOT / "samples")])
    sys.exit(speed < SPEED_TARGET or startup() > STARTUP_TARGET)
