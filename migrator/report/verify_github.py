"""Verification reports as GitHub Actions annotations, shown on the port's file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from migrator.config import Config

if TYPE_CHECKING:
    from numerics.report import Report


def render(reports: Sequence[Report], config: Config) -> str:
    """A line for each case that is not as expected; nothing when all are."""
    return "".join(f"{_annotation(report, config)}\n" for report in reports if not report.ok)


def _annotation(report: Report, config: Config) -> str:
    failure = report.failure
    words = [str(failure)] if failure is not None else list(report.notes)
    if failure is not None and failure.submodule is not None:
        words.insert(0, f"first difference in {failure.submodule or 'the module itself'}")
    title = _property(f"{report.name}: {report.verdict}")
    return f"::error {_file(report.name, config)}title={title}::{_data('. '.join(words))}"


def _file(name: str, config: Config) -> str:
    case = next((case for case in config.cases if case.name == name), None)
    if case is None:
        return ""
    port = (case.jax or "").partition(":")[0] or config.converted(case.torch.partition(":")[0])
    return f"file={_property(port)}," if port else ""


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
