"""What the converter does about rows that a mask selects, said in place of what the flag rules say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rows import Selection, selections
from migrator.findings import Finding
from migrator.infer import Facts
from migrator.source import Source

Placed = tuple[cst.CSTNode, Finding]
_GRADIENTS = ("grad", "inference_mode")


def as_converted(source: Source, facts: Facts, flagged: Sequence[Placed]) -> list[Placed]:
    """The findings with those about selections that convert keeps static as one note each.

    Args:
      flagged: what the flag rules found, and where.
    """
    kept = list(flagged)
    if not any(finding.rule == "DYN005" for _, finding in kept):
        return kept
    for found in selections(Context(source, facts)):
        if not _may_lack_gradients(source, found):
            lines = found.lines(source)
            kept = [one for placed in kept for one in _told(source, found, lines, placed)]
    return kept


def _told(source: Source, found: Selection, lines: range, placed: Placed) -> list[Placed]:
    """What is left of a finding beside the note on a selection."""
    node, finding = placed
    if node is found.call:
        mask = " ".join(syntax.code(found.mask).split())
        what = f"how many rows `{mask}` selects depends on the data; convert computes as many as it has places"
        advice = "where fewer are enough for any data, put their number in place of the mask's size in the output"
        note = replace(
            finding, message=what, advice=advice, severity="info", effort=0.0, blocks=False
        )
        return [(node, note)]
    if found.settles(source.index, node) or (finding.rule == "DYN006" and finding.line in lines):
        return []
    return [placed]


def _may_lack_gradients(source: Source, found: Selection) -> bool:
    """Whether the selection may run where no gradient is recorded, which convert leaves alone."""
    around = source.index.around(found.statement)
    items = [item for node in around if isinstance(node, cst.With) for item in node.items]
    return any(word in syntax.code(item) for item in items for word in _GRADIENTS)
