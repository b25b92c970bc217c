"""Conversion speed against libcst alone, and start-up against importing click; exit status 1 below target.

python benchmarks/convert_speed.py [PATH...]        # samples/ when no path is given
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from migrator import convert_source
from migrator.project import discover
from migrator.source import read_text

SPEED_TARGET = 0.5
STARTUP_TARGET = 3.0
ROOT = Path(__file__).parent.parent


def best(*timed: Callable[[], float], repeats: int) -> tuple[float, ...]:
    """Seconds of the fastest of several runs of each: the one least disturbed by others on the machine.

    They take turns, so that a processor which changes its pace does so for all."""
    rounds = [[work() for work in timed] for _ in range(repeats)]
    return tuple(map(min, zip(*rounds, strict=True)))


def seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    """What a clock says of a piece of work."""
    start = clock()
    work()
    return clock() - start


ALONE = """
import json, sys, time
import libcst
for line in sys.stdin:
    text = json.loads(line)
    start = time.process_time()
    assert libcst.parse_module(text).code == text
    print(time.process_time() - start, flush=True)
"""


class Alone:
    """libcst in a process of its own, where nothing has made its nodes quicker."""

    def __enter__(self) -> Alone:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", ALONE], stdin=pipe, stdout=pipe, text=True
        )
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate()

    def seconds(self, text: str) -> float:
        """Processor time to parse and write a text."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def conversion(paths: Sequence[str], repeats: int = 9) -> float:
    """Print lines per second for both, file by file in total, and return the ratio."""
    texts = {file.path: read_text(file.path) for file in discover(paths)}
    lines = sum(text.count("\n") for text in texts.values())
    alone = convert = 0.0
    with Alone() as libcst:
        for path, text in texts.items():
            work = partial(convert_source, text, path=str(path))
            work()  # reads the rules once
            reference, ours = best(
                partial(libcst.seconds, text),
                partial(seconds, work, time.process_time),
                repeats=repeats,
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

    def run(*arguments: str) -> Callable[[], float]:
        command = [sys.executable, *arguments]
        work = partial(subprocess.run, command, check=True, capture_output=True)
        return partial(seconds, work, time.perf_counter)

    click, migrate = best(
        run("-c", "import click"),
        run("-m", "migrator", "--help"),
        repeats=repeats,
    )
    print(f"start-up: import click {click * 1e3:.0f} ms, migrate --help {migrate * 1e3:.0f} ms")
    print(f"  ratio                  {migrate / click:10.2f}   (target: at most {STARTUP_TARGET})")
    return migrate / click


if __name__ == "__main__":
    speed = conversion(sys.argv[1:] or [str(ROOT / "samples")])
    sys.exit(speed < SPEED_TARGET or startup() > STARTUP_TARGET)
