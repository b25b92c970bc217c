"""Findings for a person: place, rule, message, the line itself and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from migrator.findings import SEVERITIES, Finding
from migrator.project import Conversion

_COLOUR = {"error": "red", "warning": "yellow", "info": "blue"}


def count(number: int, noun: str) -> str:
    """``"1 file"``, ``"3 files"``."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _excerpt(finding: Finding, lines: Sequence[str]) -> Iterator[str]:
    """The source line with the found part underlined."""
    if finding.snippet and "\n" not in finding.snippet.strip("\n"):
        line = finding.snippet.rstrip("\n")
    elif 0 < finding.line <= len(lines):
        line = lines[finding.line - 1]
    else:
        return
    if 0 < finding.line <= len(lines) and lines[finding.line - 1].strip() == line.strip():
        line = lines[finding.line - 1]
    gutter = " " * len(str(finding.line))
    yield f"{gutter} |"
    yield f"{finding.line} | {line}"
    end = finding.end_column if finding.end_line == finding.line else len(line) + 1
    start = min(finding.column, len(line) + 1)
    marks = " " * (start - 1) + "^" * max(1, min(end, len(line) + 1) - start)
    yield f"{gutter} | {click.style(marks, fg=_COLOUR.get(finding.severity))}"


def findings_text(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines of text for all findings; colours are stripped by ``click.echo`` where there is no terminal."""
    cache: dict[str, list[str]] = {}
    for finding in findings:
        lines = cache.setdefault(finding.path, _lines(finding.path))
        place = click.style(f"{finding.path}:{finding.line}:{finding.column}", bold=True)
        severity = click.style(finding.severity, fg=_COLOUR.get(finding.severity))
        yield f"{place}: {severity} {click.style(finding.rule, bold=True)} {finding.message}"
        yield from _excerpt(finding, lines)
        if finding.advice:
            yield f"{' ' * len(str(finding.line))} = {finding.advice}"
        yield ""


def effort_text(hours: float) -> str:
    """``"40 minutes"``, ``"3 hours"``: what a person should plan."""
    if hours < 1:
        return f"{round(hours * 60)} minutes"
    return count(round(hours), "hour")


def summary(findings: Sequence[Finding], files: int) -> str:
    """One line: how many findings of which severity in how many files, and how much work."""
    if not findings:
        return f"nothing found in {count(files, 'file')}"
    severities = [(s, sum(f.severity == s for f in findings)) for s in SEVERITIES]
    kinds = ", ".join(count(n, s) if s != "info" else f"{n} info" for s, n in severities if n)
    where = len({f.path for f in findings})
    text = f"{count(len(findings), 'finding')} in {where} of {count(files, 'file')} ({kinds})"
    hours = sum(f.effort for f in findings)
    return text + (f"; about {effort_text(hours)} of work" if hours else "")


def conversion_summary(conversion: Conversion) -> str:
    """How many files are converted, what is left in the others, where the result is; and which models need none of that."""
    total = len(conversion.files)
    partial = [file for file in conversion.files if not file.complete]
    text = f"{total - len(partial)} of {count(total, 'file')} converted"
    if partial:
        left = sum(f.blocks for file in partial for f in file.findings)
        text += f", {count(left, 'place')} marked TODO(migrate) in the rest"
    if conversion.observed:
        text += f", {count(len(conversion.observed), 'fact')} observed rather than proven"
    if conversion.written:
        every = zip(conversion.files, conversion.written, strict=True)
        shown = [str(path) for file, path in every if not partial or not file.complete]
        text += ": " + ", ".join(shown[:3])
        text += f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    whole = [f"{file.file.path}:{','.join(file.whole)}" for file in partial[:3] if file.whole]
    if whole and len(partial) <= 3:
        text += f"\nneeds nothing of what is left, and converts by itself: {' '.join(whole)}"
    return text
