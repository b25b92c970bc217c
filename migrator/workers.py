"""Work in a process of its own, whose end is told: by which signal, and what it was at."""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TextIO, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Tell = Callable[[str], None]
Work = Callable[[Argument, Tell], Result]
"""What a worker does; it says what it is at by ``tell``."""

_TOO_MUCH = 77
"""The exit status of a process that ended itself because it had more than it may."""
_EVERY = 0.05
"""Seconds between two looks: a gigabyte takes longer than that to fill."""
_PATIENCE = 5.0
"""Seconds that a process has to end by itself."""


class Ended(RuntimeError):
    """The process ended without a result; the message says how, ``at`` what it was at.

    ``status`` is its exit status, or a signal's number below zero; None where it needed more memory than it may.
    """

    def __init__(self, status: int | None, at: str, limit: float | None) -> None:
        self.at = at
        self.status = None if status == _TOO_MUCH and limit is not None else status
        super().__init__(_how(self.status, limit))


def _how(status: int | None, limit: float | None) -> str:
    if status is None:
        return f"ended: it needs more than the {(limit or 0) / 2**30:.2g} GiB it may have"
    if status >= 0:
        return f"its process left with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"its process was ended by {name}"


class _Elsewhere(Exception):
    """The traceback of what was raised in another process, as the cause of what is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(f"\n{text}")


@dataclass(frozen=True)
class _At:
    what: str


@dataclass(frozen=True)
class _Raised:
    error: Exception
    trace: str


@dataclass(frozen=True)
class _Setup:
    """What a process is told when it starts; ``stdin`` is for one that is forked, which reads what its parent would."""

    limit: float | None
    debug: bool
    parent: int
    stdin: TextIO | None = None


class Worker(Generic[Argument, Result]):
    """A process that does ``work`` on one argument after the other; where it ended, the next argument gets a new one.

    Args:
      limit: bytes it may have resident; it is ended beyond.
      debug: have it say where in Python it was when a signal ends it.
      fork: start it now, as a copy of this process (see ``may_fork``); later ones are started afresh.
    """

    def __init__(
        self,
        work: Work[Argument, Result],
        *,
        limit: float | None = None,
        debug: bool = False,
        fork: bool = False,
    ) -> None:
        self._work, self._limit, self._debug = work, limit, debug
        self._running: tuple[BaseProcess, Connection] | None = None
        if fork:
            self._start("fork")

    def __call__(self, argument: Argument) -> Result:
        """The result of ``work``.

        Raises:
          Ended: the process ended before there was one.
          Exception: whatever ``work`` raised.
        """
        process, connection = self._running or self._start("spawn")
        at = ""
        try:
            connection.send(argument)
            while isinstance(answer := connection.recv(), _At):
                at = answer.what
        except (EOFError, OSError):
            process.join(_PATIENCE)
            self.close()
            raise Ended(process.exitcode, at, self._limit) from None
        if isinstance(answer, _Raised):
            raise answer.error from _Elsewhere(answer.trace)
        result: Result = answer
        return result

    def close(self) -> None:
        """End the process, whatever it is at."""
        running, self._running = self._running, None
        if running is not None:
            process, connection = running
            process.kill()
            process.join()
            connection.close()

    def _start(self, method: str) -> tuple[BaseProcess, Connection]:
        context: Any = get_context(method)
        ours, theirs = context.Pipe()
        forked = method == "fork"
        setup = _Setup(self._limit, self._debug, os.getpid(), sys.stdin if forked else None)
        arguments = (self._work, setup, theirs, ours if forked else None)
        process = context.Process(target=_serve, args=arguments)
        stdin = sys.stdin
        try:
            if forked:
                sys.stdin = None  # which multiprocessing closes in the child
            process.start()
        finally:
            sys.stdin = stdin
        theirs.close()
        self._running = process, ours
        return self._running


def may_fork() -> bool:
    """Whether a copy of this process can compute: only where nothing has started threads of its own yet."""
    loaded = any(library in sys.modules for library in ("torch", "jax"))
    return sys.platform == "linux" and not loaded and threading.active_count() == 1


def _serve(
    work: Work[Any, Any], setup: _Setup, connection: Connection, other: Connection | None
) -> None:
    """The life of a worker's process."""
    if other is not None:
        other.close()
        sys.stdin = setup.stdin
    if setup.debug:
        faulthandler.enable()
    _in_background(_leave_with, setup.parent)
    if setup.limit is not None:
        _in_background(_watch, setup.limit)
    try:
        while True:
            connection.send(_answer(work, connection.recv(), lambda at: connection.send(_At(at))))
    except (EOFError, OSError):
        return  # nobody asks any more
    except KeyboardInterrupt:
        os._exit(130)  # the parent was interrupted as well, and says so


def _answer(work: Work[Any, Any], argument: Any, tell: Tell) -> Any:
    try:
        answer = work(argument, tell)
    except Exception as error:
        answer = _Raised(_portable(error), traceback.format_exc())
    with suppress(OSError, ValueError):
        sys.stdout.flush()  # what the work has printed comes before what is said of it
    return answer


def _portable(error: Exception) -> Exception:
    """The error, or one that says the same where it cannot be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _in_background(loop: Callable[[Any], None], argument: Any) -> None:
    """Python's threads run on while XLA and torch compute."""
    threading.Thread(target=loop, args=(argument,), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _watch(limit: float) -> None:
    from numerics.health import memory_now

    while memory_now() <= limit:
        time.sleep(_EVERY)
    os._exit(_TOO_MUCH)
