"""What a verification's time goes to, and what a warm compilation cache saves: ``python -m benchmarks.verify_cost [CASE]...``.

Each sample is verified twice in processes of its own, first with an empty compilation cache and then with what the
first left there. ``torch`` is building its module and running it, as it is and with random rounding; ``tracing`` and
``lowering`` are what JAX does in Python before XLA sees a program; ``other`` is verify's own. Here torch and XLA
work one after the other; shares of a run say the same on a slow machine. The last columns are the time it took,
the memory used at most, which ``--memory`` bounds, and the verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    "/jax/core/compile/backend_compile_duration": "XLA compile",
}
"""JAX's own clocks; a compilation that the cache answers counts as one."""


class Clock:
    """Seconds by what they went to; what runs inside of something else counts for the inner one, in each thread."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._threads = threading.local()

    @property
    def _open(self) -> list[float]:
        """What is open in this thread, with the seconds counted inside so far."""
        if not hasattr(self._threads, "open"):
            self._threads.open = []
        opened: list[float] = self._threads.open
        return opened

    def add(self, name: str, seconds: float) -> None:
        """Count seconds that an event reports, inside of what is open."""
        self.seconds[name] += seconds
        if self._open:
            self._open[-1] += seconds

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """Count the time of a block, less what is counted inside."""
        started = time.perf_counter()
        self._open.append(0.0)
        try:
            yield
        finally:
            inner = self._open.pop()
            whole = time.perf_counter() - started
            self.seconds[name] += whole - inner
            if self._open:
                self._open[-1] += whole

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function`` with its time counted."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.on(name):
                return function(*args, **kwargs)

        return call


def measured(case: str, examples: int, memory: float | None, beside: bool) -> dict[str, Any]:
    """Verify a sample here, with the clock on torch's runs, JAX's compilations and the port's calls."""
    import jax

    from migrator import verifying
    from migrator.config import load_config
    from numerics import pair, runners

    clock = Clock()

    def heard(name: str, seconds: float, **_: Any) -> None:
        if name in _EVENTS:
            clock.add(_EVENTS[name], seconds)

    jax.monitoring.register_event_duration_secs_listener(heard)
    pair.run_torch = clock.timed("torch", pair.run_torch)
    pair.perturbed = clock.timed("torch", pair.perturbed)
    verifying.build_torch = clock.timed("torch", verifying.build_torch)
    runners._called = clock.timed("XLA run", runners._called)
    if not beside:
        runners._BESIDE = _Here()  # type: ignore[assignment]
    config, started = load_config(ROOT / "pyproject.toml"), time.perf_counter()
    with clock.on("other"):
        (report,) = verifying.verify_cases(config, [case], examples=examples, memory=memory)
    result: dict[str, Any] = dict(clock.seconds) | {"wall": time.perf_counter() - started}
    return result | {"verdict": report.verdict, "peak": report.peak_memory, "notes": report.notes}


class _Here:
    """In the place of the thread that works beside torch: two that share Python's lock would count it twice."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """The result, which is there already."""
        done: Future[Any] = Future()
        try:
            done.set_result(function(*args))
        except Exception as error:
            done.set_exception(error)
        return done


def in_process(case: str, cache: str, options: argparse.Namespace) -> dict[str, Any]:
    """``measured`` in a process of its own, with compilations kept in ``cache``."""
    command = [sys.executable, "-m", "benchmarks.verify_cost", "--here", case]
    command += ["--examples", str(options.examples), "--memory", str(options.memory or 0)]
    command += ["--beside"] if options.beside else []
    environment = os.environ | {"XDG_CACHE_HOME": cache, "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    return dict(json.loads(run.stdout.splitlines()[-1]))


PARTS = ("torch", "XLA compile", "XLA run", "tracing", "lowering", "other")


def shares(result: dict[str, Any]) -> str:
    """The parts of a run in per cent."""
    whole = sum(result.get(part, 0.0) for part in PARTS)
    return "  ".join(f"{part} {100 * result.get(part, 0.0) / whole:4.1f} %" for part in PARTS)


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--examples", type=int, default=12)
    parser.add_argument("--memory", type=float, default=0.0, help="bytes")
    parser.add_argument(
        "--beside",
        action="store_true",
        help="torch works while XLA does, as it usually is; only times mean anything then",
    )
    parser.add_argument("--here", metavar="CASE", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.here:
        memory = options.memory or None
        print(json.dumps(measured(options.here, options.examples, memory, options.beside)))
        return
    from migrator.config import load_config

    config = load_config(ROOT / "pyproject.toml")
    names = options.cases or [case.name for case in config.cases if case.expect == "equal"]
    cold: Counter[str] = Counter()
    warm: Counter[str] = Counter()
    for name in names:
        with tempfile.TemporaryDirectory() as cache:
            for label, total in (("cold", cold), ("warm", warm)):
                result = in_process(name, cache, options)
                total.update({part: result.get(part, 0.0) for part in (*PARTS, "wall")})
                peak = result["peak"] / 2**30
                print(
                    f"{name:15} {label} {shares(result)}  {result['wall']:.1f} s {peak:.2f} GiB"
                    f" {result['verdict']}",
                    flush=True,
                )
    for label, total in (("cold", cold), ("warm", warm)):
        print(f"{'all':15} {label} {shares(dict(total))}")
    print(f"a warm cache takes {warm['wall'] / cold['wall']:.2f} of the time of a first run")


if __name__ == "__main__":
    main()
