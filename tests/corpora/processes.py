"""A process for each architecture, with limits of time and memory."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.corpora.libraries import Library, register_operators

WAITING = 10.0
"""How much longer a process may take than it computes: a machine has other work."""


@dataclass(frozen=True)
class Limits:
    """Seconds of computing and gigabytes of memory that an architecture may take, and whether training is compared."""

    seconds: float
    gigabytes: float
    training: bool = True


@dataclass
class Running:
    """A process and what it has told so far."""

    process: BaseProcess
    told: Connection
    record: dict[str, Any]
    started: float = field(default_factory=time.perf_counter)

    def listen(self) -> None:
        """Take in what it has told."""
        try:
            while self.told.poll():
                self.record = self.told.recv()
        except EOFError:
            pass

    def too_much(self, limits: Limits) -> str:
        """Why it must be stopped, or nothing."""
        seconds, size = used(self.process.pid or 0)
        waited = time.perf_counter() - self.started
        if seconds > limits.seconds or waited > WAITING * limits.seconds:
            return "no time"
        return "no memory" if size > limits.gigabytes * 2**30 else ""

    def finished(self, stopped: str) -> dict[str, Any]:
        """The record of a process that has ended."""
        self.process.join()
        self.listen()
        record = dict(self.record)
        stage = record.pop("stage", "")
        if "verdict" in record:
            if stopped:
                record.setdefault("train", stopped)
        elif stopped or self.process.exitcode:
            if (self.process.exitcode or 0) < 0:
                stopped = (
                    stopped or "no memory"
                )  # another has killed it: the system, for want of memory
            record |= {"verdict": stopped or "raises", "why": f"{stopped or 'it ends'}: {stage}"}
        return record | {"seconds": round(time.perf_counter() - self.started)}


def used(pid: int) -> tuple[float, int]:
    """Seconds a process has computed, and bytes of memory it has."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0, 0
    ticks = int(times[11]) + int(times[12])
    return ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE")


def outcomes(
    library: Library, names: Sequence[str], directory: Path, limits: Limits, jobs: int
) -> Iterator[dict[str, Any]]:
    """The record of each architecture as it is done.

    What all need is imported once and the processes are forked, before any of it has started a thread.
    """
    register_operators()
    importlib.import_module(
        f"{library.name}.models" if library.name == "torchvision" else library.name
    )
    importlib.import_module("tests.corpora.one")
    sys.path.insert(0, str(directory))
    left, running = list(names), list[Running]()
    while left or running:
        while left and len(running) < jobs:
            running.append(start(library, left.pop(0), directory, limits))
        time.sleep(0.2)
        for one in list(running):
            one.listen()
            stopped = one.too_much(limits) if one.process.is_alive() else ""
            if stopped:
                one.process.kill()
            if stopped or not one.process.is_alive():
                running.remove(one)
                yield one.finished(stopped)


def start(library: Library, name: str, directory: Path, limits: Limits) -> Running:
    """Fork a process for an architecture."""
    context = multiprocessing.get_context("fork")
    told, tell = context.Pipe(duplex=False)
    call = (
        library.name,
        name,
        directory,
        limits.seconds if limits.training else 0.0,
        tell,
        directory / f"{name}.log",
    )
    process = context.Process(target=_child, args=call)
    process.start()
    tell.close()
    return Running(process, told, {"library": library.name, "name": name, "stage": "torch"})


def _child(
    library: str, name: str, directory: Path, seconds: float, tell: Connection, log: Path
) -> None:
    from tests.corpora.one import run

    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    run(library, name, directory, seconds, tell.send)
