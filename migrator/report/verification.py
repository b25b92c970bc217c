"""What verify found, for a person: a line a case, and all about a difference."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from migrator.errors import UserError
from migrator.report.text import count

if TYPE_CHECKING:
    from numerics.report import Report

_COLOUR = {"equal": "green", "flagged": "yellow"}

_LESS = (
    "not compared",
    "not compiled",
    "nothing there to compare",
    "is noise in torch itself",
    "examples tried",
    "torch itself raises",
    "ran on",
)
"""What notes say of something that an ``equal`` does not speak of."""


def table_line(report: Report, width: int) -> str:
    """Name, verdict, the error nearest to its limit beside torch's own, and how much was tried."""
    verdict = click.style(f"{report.verdict:<12}", fg=_COLOUR.get(report.verdict, "red"))
    line = f"{report.name:<{width}}  {verdict}"
    if any(check.conditioned for check in report.checks):
        tried = count(report.examples, "example")
        line += f" {report.errors()}  {tried}  {report.seconds:.1f} s"
    return line.rstrip()


def details(report: Report, verbose: bool = False) -> Iterator[str]:
    """Indented lines: each check when asked for, notes, and for a difference where it starts and how to see it."""
    if verbose:
        for check in report.checks:
            yield (
                f"  {check.name:<22} {'equal' if check.ok else 'DIFFERENT':<10}"
                f"error {check.error:.1e}  torch's own {check.torch_error:.1e}"
                f"  nearest its limit: {check.worst}"
            )
    everything = verbose or not report.ok or report.verdict == "flagged"
    for note in report.notes:
        if everything or any(words in note for words in _LESS):
            yield f"  {note}"
    for line in report.health:
        yield f"  health: {line}"
    if verbose and report.peak_memory:
        compiled = count(report.compiles, "compilation")
        yield f"  memory at most {report.peak_memory / 2**30:.2f} GiB, {compiled}"
        yield from (f"    {compilation}" for compilation in report.compilations)
    for name, histogram in report.ulps.items():
        yield f"  {name}, numbers in per cent:"
        yield from (f"    {line}" for line in histogram.lines())
    if report.tpu_errors:
        words = ", ".join(f"{name} {error:.1e}" for name, error in report.tpu_errors.items())
        yield f"  on a TPU at default precision, relative to the largest value: {words}"
    for result in report.lowered:
        yield f"  {result}"
    failure = report.failure
    if failure is None:
        return
    where = failure.submodule
    if where is not None:
        yield f"  first difference in: {where or 'the module itself'}"
    yield f"  {failure.check}: {failure}"
    if failure.statement is not None:
        yield textwrap.indent(str(failure.statement), "  ")
    if failure.origin is not None:
        yield f"  the port's first value that is not finite: {failure.origin}"
    for difference in failure.differences[1:4]:
        yield f"  {' ' * len(failure.check)}  {difference}"
    if failure.snippet:
        yield f"  example: {failure.example}"
        yield "  to see it again:"
        yield textwrap.indent(failure.snippet.rstrip(), "    ")


def summary(reports: Sequence[Report]) -> str:
    """``"11 equal, 1 flagged"``."""
    return ", ".join(f"{n} {verdict}" for verdict, n in Counter(r.verdict for r in reports).items())


def lines(report: Report, names: Sequence[str], verbose: bool = False) -> Iterator[str]:
    """All about one case of ``names``; a case that could not run is left to ``errors`` when it is alone."""
    if report.verdict == "error" and len(names) == 1:
        return
    yield table_line(report, max(map(len, names)))
    if report.verdict != "error":
        yield from details(report, verbose)


def errors(reports: Sequence[Report]) -> list[str]:
    """Why cases could not run, a line each."""
    return [note for report in reports if report.verdict == "error" for note in report.notes]


def status(reports: Sequence[Report]) -> int:
    """0 when all are as they should be, 1 when one is not equal, 2 when the rest could not run."""
    if any(not report.ok and report.verdict != "error" for report in reports):
        return 1
    return 2 if errors(reports) else 0


def check_writable(path: str) -> None:
    """Whether a report can be written there, before the run that it is on.

    Raises:
      UserError: the directory is not there, or the file cannot be written.
    """
    file = Path(path)
    what = ""
    if file.is_dir():
        what = "is a directory"
    elif not file.parent.is_dir():
        what = f"there is no directory {file.parent}"
    elif not os.access(file if file.exists() else file.parent, os.W_OK):
        what = "permission denied"
    if what:
        raise UserError(f"{path}: cannot write the report ({what})")


def write(path: str, text: str) -> None:
    """A report into a file.

    Raises:
      UserError: the file cannot be written.
    """
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot write the report ({error.strerror})") from None
