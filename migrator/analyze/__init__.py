"""Runs the flag rules over a file: what stands in the way of TPU and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import libcst as cst

from migrator.analyze.agreement import agreed
from migrator.analyze.names import unknown_names
from migrator.analyze.rows import as_converted
from migrator.analyze.suppress import Suppressions
from migrator.analyze.walk import FlagWalk, Found, load_flags
from migrator.findings import Finding, ordered
from migrator.infer import Facts
from migrator.saying import may_concern_torch
from migrator.source import Source

if TYPE_CHECKING:
    from migrator.convert.randomness import RngPlan

__all__ = ["analyze_source", "load_flags", "run_flags"]


def _finding(source: Source, found: Found) -> Finding:
    span = source.span(found.node)
    return Finding(
        found.code,
        found.what,
        found.severity,
        span.line,
        span.column,
        span.end_line,
        span.end_column,
        source.path,
        found.advice,
        source.excerpt(span.line),
        found.effort,
        found.blocks,
    )


def run_flags(
    source: Source, facts: Facts, plan: RngPlan | None = None
) -> list[tuple[cst.CSTNode, Finding]]:
    """The findings of the flag rules with the nodes they stand at, in the order of the source.

    Args:
      plan: where random numbers come from, when somebody has worked it out already.
    """
    suppressions = Suppressions(source)
    walk = FlagWalk(source, facts, plan)
    found = ((item.node, _finding(source, item)) for item in walk.run())
    return [(node, finding) for node, finding in found if not suppressions.covers(finding)]


def analyze_source(text: str, path: str | None = None) -> list[Finding]:
    """What stands in the way of TPU and JAX in one file of source; nothing is imported or run.

    A comment ``# migrate: ignore[DYN001]`` on the line silences a rule there, ``# migrate: ignore`` all of them.

    Raises:
      SourceError: the text does not parse.
    """
    source = Source(text, path)
    if not may_concern_torch(text):
        return []
    from migrator.convert import converted

    result, ctx = converted(source)
    return agreed(source, findings_of(source, ctx.facts, ctx.flagged), result.findings)


def findings_of(
    source: Source, facts: Facts, flagged: Sequence[tuple[cst.CSTNode, Finding]]
) -> list[Finding]:
    """What stands in the way in a file whose kinds are known, beside what the flag rules say."""
    taken = {node for node, finding in flagged if finding.blocks}
    suppressions = Suppressions(source)
    names = (_finding(source, found) for found in unknown_names(source, facts, taken))
    kept = [finding for finding in names if not suppressions.covers(finding)]
    told = as_converted(source, facts, flagged)
    return ordered([*(finding for _, finding in told), *kept])
