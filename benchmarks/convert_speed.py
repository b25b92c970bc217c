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


def best(work: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    """Seconds of the fastest of several runs: the one least disturbed by others on the machine."""
    times = []
    for _ in range(repeats):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def conversion(paths: Sequence[str], repeats: int = 5) -> float:
    """Print lines per second for both, file by file in total, and return the ratio."""
    texts = {file.path: read_text(file.path) for file in discover(paths)}
    lines = sum(text.count("\n") for text in texts.values())
    alone = convert = 0.0
    for path, text in texts.items():
        convert_source(text, path=str(path))  # reads the rules once
        works = partial(convert_source, text, path=str(path))
        alone += best(lambda text=text: cst.parse_module(text).code, repeats, time.process_time)
        convert += best(works, repeats, time.process_time)
    print(f"{len(texts)} files, {lines} lines, one core")
    print(f"  libcst parse + write   {lines / alone:10,.0f} lines/s")
    print(f"  convert                {lines / convert:10,.0f} lines/s")
    print(f"  ratio                  {alone / convert:10.2f}   (target: at least {SPEED_TARGET})")
    return alone / convert


def startup(repeats: int = 10) -> float:
    """Print and return how many times longer ``migrate --help`` takes than importing click."""

    def run(*arguments: str) -> float:
        command = [sys.executable, *arguments]
        start = partial(subprocess.run, command, check=True, capture_output=True)
        return best(start, repeats, time.perf_counter)

    click = run("-c", "import click")
    migrate = run("-m", "migrator", "--help")
    print(f"start-up: import click {click * 1e3:.0f} ms, migrate --help {migrate * 1e3:.0f} ms")
    print(f"  ratio                  {migrate / click:10.2f}   (target: at most {STARTUP_TARGET})")
    return migrate / click


if __name__ == "__main__":
    speed = conversion(sys.argv[1:] or [str(ROOT / "samples")])
    sys.exit(speed < SPEED_TARGET or startup() > STARTUP_TARGET)
