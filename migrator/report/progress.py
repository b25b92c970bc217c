"""Progress of work that takes longer than a second: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Lock, Timer
from typing import Any, TypeVar

T = TypeVar("T")
_PATIENCE = 1.0
_PLAIN_EVERY = 10.0


class _Bar:
    """A progress bar on stderr that shows itself when the work has taken a second."""

    def __init__(self, label: str, total: int | None) -> None:
        self._label, self._total, self._done = label, total, 0
        self._bar: Any = None
        self._lock = Lock()
        self._timer: Timer | None = Timer(_PATIENCE, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}", markup=False)
        columns = [SpinnerColumn(), BarColumn(), TimeElapsedColumn(), text]
        with self._lock:
            if self._timer is None:
                return
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.add_task(self._label, total=self._total, completed=self._done)
            self._bar.start()

    def update(self, done: int, name: str) -> None:
        with self._lock:
            self._done, self._label = done, f"{self._label.split()[0]} {name}"
            if self._bar is not None:
                self._bar.update(0, completed=done, description=self._label)

    def stop(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if self._bar is not None:
                self._bar.stop()


def _on_terminal(items: Sequence[T], label: str) -> Iterator[T]:
    bar = _Bar(label, len(items))
    try:
        for done, item in enumerate(items):
            bar.update(done, name_of(item))
            yield item
    finally:
        bar.stop()


def _plain(items: Sequence[T], label: str) -> Iterator[T]:
    last = time.monotonic()
    for done, item in enumerate(items):
        if time.monotonic() - last > _PLAIN_EVERY:
            print(f"{label} {done}/{len(items)} {name_of(item)}", file=sys.stderr, flush=True)
            last = time.monotonic()
        yield item


def name_of(item: Any) -> str:
    """What the display calls an item: its ``name``, else itself."""
    return str(getattr(item, "name", item))


def track(items: Sequence[T], label: str) -> Iterable[T]:
    """``items``, with progress on stderr while the loop over them runs."""
    return _on_terminal(items, label) if sys.stderr.isatty() else _plain(items, label)


def silent(items: Sequence[T], label: str) -> Iterable[T]:
    """``items``, without any display."""
    return items


def tracker(quiet: bool) -> Callable[[Sequence[T], str], Iterable[T]]:
    """``silent`` or ``track``."""
    return silent if quiet else track


@contextmanager
def counter(label: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """A function to call with the name of each thing as its turn comes, where the number is not known."""
    if quiet or not sys.stderr.isatty():
        yield lambda name: None
        return
    bar, done = _Bar(label, None), count()
    try:
        yield lambda name: bar.update(next(done), name)
    finally:
        bar.stop()
