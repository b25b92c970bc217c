"""Cases at work in processes of their own, and a report on one that its process did not survive."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from migrator.config import Config
from migrator.verifying import select, verify_cases
from migrator.workers import Ended, Tell, Worker, may_fork

if TYPE_CHECKING:
    from numerics.report import Report

_NEARLY = 0.8
"""The share of the memory beyond which it is not risked to start another example."""


@contextmanager
def verify_each(
    config: Config, names: Sequence[str], jobs: int, *, debug: bool = False, **options: Any
) -> Iterator[Iterator[Report]]:
    """The reports of cases in their order, ``jobs`` of them at work at a time.

    They compute in other processes, which start before anything is loaded here; one that is ended in the middle of a case
    makes that case an error and no more. Only where torch or jax is loaded already, or the system cannot copy a process,
    is a case that comes alone computed in this one.

    ``options`` are those of ``migrator.verifying.verify_cases``; a case that needs more than ``memory`` bytes is an
    error, and near that it starts no further example.
    """
    select(config, names)  # an unknown name is an error of all
    limit, jobs = options.get("memory"), min(jobs, len(names))
    if limit is not None:
        options["memory"] = _NEARLY * limit
    work = partial(_verify_one, config, options)
    fork = may_fork()
    if limit is None and jobs <= 1 and not fork:
        yield (work(name, lambda at: None) for name in names)
        return
    workers = [Worker(work, limit=limit, debug=debug, fork=fork) for _ in range(jobs)]
    try:
        # where memory is counted, each case has a process to itself
        yield _reports(workers, names, fresh=limit is not None)
    finally:
        for worker in workers:
            worker.close()


def _verify_one(config: Config, options: Mapping[str, Any], name: str, tell: Tell) -> Report:
    return verify_cases(config, [name], progress=lambda _, at: tell(at), **options)[0]


def _reports(
    workers: Sequence[Worker[str, Report]], names: Sequence[str], fresh: bool
) -> Iterator[Report]:
    free: SimpleQueue[Worker[str, Report]] = SimpleQueue()
    for worker in workers:
        free.put(worker)

    def verified(name: str) -> Report:
        worker = free.get()
        try:
            return worker(name)
        except Ended as end:
            return _unfinished(name, end)
        finally:
            if fresh:
                worker.close()
            free.put(worker)

    if len(workers) <= 1:
        yield from map(verified, names)
        return
    threads = ThreadPoolExecutor(len(workers))
    try:
        yield from threads.map(verified, names)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


_ADVICE: dict[int, str] = {
    signal.SIGKILL: "as a system does that is out of memory: try smaller `dims`, fewer --jobs, or --memory",
    signal.SIGTERM: "which another program sent",
}
_CRASH = (
    "compiled code crashed (XLA, torch or an extension): --debug shows the lines that led there; smaller `dims`, or"
    " `grad = false` in the case where it was at gradients, may get around it"
)


def _unfinished(name: str, end: Ended) -> Report:
    """The report on a case that ended its process."""
    from numerics.report import Report

    words = f"{name}: {end}{f' at {end.at}' if end.at else ''}"
    if end.status is not None:
        left = end.status >= 0
        why = "the model's code calls exit" if left else _ADVICE.get(-end.status, _CRASH)
        words += f"; {why}"
    return Report(name=name, verdict="error", notes=[words])
