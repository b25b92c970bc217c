"""A package of 50,000 lines: conversion against libcst alone, two cores against one, memory, and a second run.

python benchmarks/package_speed.py [DIRECTORY]        # samples/, repeated, when no directory is given
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from migrator.project import File, convert_path, discover
from migrator.source import read_text

LINES = 50_000
ALONE_TARGET = 0.6
CORES_TARGET = 1.7
MEMORY_TARGET = 1024
ROOT = Path(__file__).parent.parent


def package(directory: Path, lines: int = LINES) -> Path:
    """A package of copies of the samples, each part of which imports from the one before it."""
    root = directory / "large"
    texts = {p.name: p.read_text() for p in sorted((ROOT / "samples").glob("*.py"))}
    written = part = 0
    while written < lines:
        folder = root / f"part{part}"
        folder.mkdir(parents=True)
        before = f"from ..part{part - 1}.mlp import *\n" if part else ""
        (folder / "__init__.py").write_text(before)
        for name, text in texts.items():
            (folder / name).write_text(text)
            written += text.count("\n")
        part += 1
    (root / "__init__.py").touch()
    return root


ALONE = """
import json, sys, time
import libcst
texts = json.load(sys.stdin)
start = time.process_time()
for text in texts:
    assert libcst.parse_module(text).code == text
print(time.process_time() - start)
"""


def libcst_alone(files: Sequence[File]) -> float:
    """Seconds of processor time to parse and write all files, where nothing has made libcst's nodes quicker."""
    texts = json.dumps([read_text(file.path) for file in files])
    command = [sys.executable, "-c", ALONE]
    return float(subprocess.run(command, input=texts, capture_output=True, text=True).stdout)


def keep_bytecode(directory: Path) -> None:
    """Have the programs started from here keep what Python has compiled, as they do where they are installed."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(directory)


def run(root: Path, out: Path, jobs: int) -> tuple[float, float, float]:
    """Wall time, processor time and largest memory of a process (MiB) of ``migrate convert`` as a user starts it."""
    command = [sys.executable, "-m", "migrator", "convert", str(root), "-o", str(out / root.name)]
    command += ["--no-cache", "-q", "-j", str(jobs)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used, after.ru_maxrss / 1024


def second_run(root: Path, directory: Path) -> tuple[int, float, float]:
    """How many files a second run works on after one has changed, and the seconds of both runs."""
    from migrator.package import build

    worked: list[str] = []
    real = build.Builder.build

    def noted(self: build.Builder, job: build.Job) -> list[build.Outcome]:
        worked.extend(module for module, _, _ in job.files)
        return real(self, job)

    build.Builder.build = noted  # type: ignore[method-assign]
    seconds = []
    for _ in range(2):
        worked.clear()
        start = time.perf_counter()
        convert_path([root], directory / "again" / root.name, cache=directory / "cache")
        seconds.append(time.perf_counter() - start)
        changed = discover([root])[-1].path
        changed.write_text(changed.read_text() + "\n# changed\n")
    build.Builder.build = real  # type: ignore[method-assign]
    return len(worked), seconds[0], seconds[1]


def main(arguments: Sequence[str]) -> bool:
    """Print all figures; whether a target is missed."""
    with tempfile.TemporaryDirectory(prefix="migrate-speed-") as folder:
        directory = Path(folder)
        root = Path(arguments[0]) if arguments else package(directory)
        files = discover([root])
        lines = sum(read_text(file.path).count("\n") for file in files)
        alone = libcst_alone(files)
        keep_bytecode(directory / "bytecode")
        run(package(directory / "small", lines=1), directory / "first", 1)
        one_wall, one, memory = run(root, directory / "one", 1)
        two_wall, _, _ = run(root, directory / "two", 2)
        print(f"{len(files)} files, {lines} lines")
        print(f"  libcst parse + write     {alone:8.1f} s")
        print(f"  convert, one process     {one:8.1f} s of processor time, {one_wall:.1f} s")
        print(f"  ratio                    {alone / one:8.2f}   (target: at least {ALONE_TARGET})")
        print(f"  convert, two processes   {two_wall:8.1f} s")
        print(
            f"  ratio                    {one_wall / two_wall:8.2f}   (target: at least {CORES_TARGET})"
        )
        print(f"  memory of a process      {memory:8.0f} MiB (target: under {MEMORY_TARGET})")
        missed = alone / one < ALONE_TARGET or one_wall / two_wall < CORES_TARGET
        missed |= memory >= MEMORY_TARGET
        if not arguments:  # a directory of the user's is not written to
            number, first, again = second_run(root, directory)
            print(
                f"  second run, one changed  {number:8d} file(s), {again:.1f} s after {first:.1f} s"
            )
            missed |= number != 1
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
