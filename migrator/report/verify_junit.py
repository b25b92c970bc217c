"""Verification reports as JUnit XML, the format every CI system reads: a suite a case, a test a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import click

if TYPE_CHECKING:
    from numerics.report import Report


def render(reports: Sequence[Report]) -> str:
    """One ``<testsuites>`` document, valid against the Jenkins schema (junit-10.xsd)."""
    root = ElementTree.Element("testsuites", name="migrate verify")
    for report in reports:
        _suite(root, report)
    for total in ("tests", "failures", "errors"):
        root.set(total, str(sum(int(suite.get(total, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(root: ElementTree.Element, report: Report) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=report.name)
    names = [check.name for check in report.checks] or ["verdict"]
    wrong = _wrong(report)
    if wrong and wrong not in names:
        names.append(wrong)
    seconds = report.seconds / len(names)
    for name in names:
        test = ElementTree.SubElement(
            suite, "testcase", name=name, classname=report.name, time=f"{seconds:.3f}"
        )
        if name == wrong:
            kind = "error" if report.verdict == "error" else "failure"
            problem = ElementTree.SubElement(
                test, kind, type=report.verdict, message=_message(report)
            )
            problem.text = _xml_text(_details(report))
    suite.set("tests", str(len(names)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", str(len(suite.findall("testcase/error"))))
    suite.set("time", f"{report.seconds:.3f}")


def _wrong(report: Report) -> str | None:
    """The one test that fails; what follows from it does not count again."""
    if report.ok:
        return None
    return report.failure.check if report.failure is not None else "verdict"


def _message(report: Report) -> str:
    failure = report.failure
    text = str(failure) if failure is not None else "; ".join(report.notes) or report.verdict
    return _xml_text(text)


def _details(report: Report) -> str:
    from migrator.report.verification import lines

    return click.unstyle("\n".join(lines(report, [report.name, ""], verbose=True)))


def _xml_text(text: str) -> str:
    """Without the control characters that XML 1.0 has no way to write."""
    return "".join(c for c in text if c >= " " or c in "\n\t")
