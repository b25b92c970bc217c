"""Work in a process of its own that may have so much memory and no more."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

_TOO_MUCH = 77
"""The exit status of a process that ended itself because it had more than it may."""
_EVERY = 0.05
"""Seconds between two looks: a gigabyte takes longer than that to fill."""


class Ended(RuntimeError):
    """The process ended without a result; the message says why."""


@dataclass(frozen=True)
class _Raised:
    error: Exception


def bounded(work: Callable[[Argument], Result], argument: Argument, limit: float) -> Result:
    """The result of ``work(argument)`` from a new process that is ended once it has more than ``limit`` bytes resident.

    Raises:
      Ended: it needed more than that, or died.
      Exception: whatever ``work`` raised.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, argument, limit, theirs))
    process.start()
    theirs.close()
    try:
        result: Result | _Raised = ours.recv()
    except EOFError:
        process.join()
        raise Ended(_why(process.exitcode, limit)) from None
    finally:
        if process.is_alive():
            process.join(timeout=5)
            process.kill()
        ours.close()
    if isinstance(result, _Raised):
        raise result.error
    return result


def _why(status: int | None, limit: float) -> str:
    if status == _TOO_MUCH:
        return f"ended: it needs more than the {limit / 2**30:.2g} GiB it may have"
    how = f"signal {-status}" if status is not None and status < 0 else f"exit status {status}"
    return f"its process ended without a result ({how})"


def _run(
    work: Callable[[Argument], Result], argument: Argument, limit: float, results: Connection
) -> None:
    threading.Thread(target=_watch, args=(limit,), daemon=True).start()
    try:
        results.send(work(argument))
    except Exception as error:
        results.send(_Raised(error))


def _watch(limit: float) -> None:
    """Python's threads run on while XLA and torch compute, so this one is there to end them."""
    from numerics.health import memory_now

    while memory_now() <= limit:
        time.sleep(_EVERY)
    os._exit(_TOO_MUCH)
