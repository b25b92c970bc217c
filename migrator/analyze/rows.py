"""What the converter does about selected rows, reductions over masks and branches, said in place of what flag rules say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.known_masks import known_masks
from migrator.convert.masked_rows import Masked, masked_rows
from migrator.convert.passes.bounded_writes import bounded
from migrator.convert.passes.branching import branches
from migrator.convert.passes.dropped_layers import drops
from migrator.convert.passes.masked_reductions import masked
from migrator.convert.passes.pointers import pointers
from migrator.convert.passes.returned_numbers import returned_numbers
from migrator.convert.passes.selected_places import places
from migrator.convert.passes.selected_values import held
from migrator.convert.passes.stopping import stops
from migrator.convert.rows import Selection, selections
from migrator.findings import Finding
from migrator.infer import Facts
from migrator.source import Source

Placed = tuple[cst.CSTNode, Finding]
_GRADIENTS = ("grad", "inference_mode")


def as_converted(source: Source, facts: Facts, flagged: Sequence[Placed]) -> list[Placed]:
    """The findings with those about what convert keeps static as one note each.

    Args:
      flagged: what the flag rules found, and where.
    """
    kept = list(flagged)
    rules = {finding.rule for _, finding in kept if finding.blocks}
    if "DYN005" in rules:
        for found in selections(Context(source, facts)):
            if not _may_lack_gradients(source, found.statement):
                lines = found.lines(source)
                kept = [one for placed in kept for one in _told(source, found, lines, placed)]
    if "DYN001" in rules:
        ctx = _planned(source, facts, kept)
        for masked in masked_rows(ctx):
            if not _may_lack_gradients(source, masked.reads[0]):
                lines = masked.lines(source)
                kept = [one for placed in kept for one in _masked(source, masked, lines, placed)]
    if not rules.isdisjoint({*_CONVERTED, "DYN005"}):
        kept = _as_planned(source, facts, kept)
    return kept


_CONVERTED = {
    "DYN001": "convert computes it everywhere and takes what is asked of it over the mask",
    "DYN002": "convert makes `lax.cond` of it",
    "DYN003": "convert writes to all places within the bounds, by a mask of them",
    "DYN004": "convert keeps it as an array, and writes from there on",
    "DYN005": "convert writes through the mask itself",
}
_RETURNED = "convert returns the number, and the array where JAX traces"
_DROPPED = "convert computes the layer in any case, and takes its result or not"


def _planned(source: Source, facts: Facts, flagged: Sequence[Placed]) -> Context:
    ctx = Context(source, facts)
    ctx.blocked = {
        node: (finding.rule, finding.message, finding.advice)
        for node, finding in flagged
        if finding.blocks
    }
    return ctx


def _as_planned(source: Source, facts: Facts, flagged: Sequence[Placed]) -> list[Placed]:
    """Notes in place of what is said of reductions over masks and of branches that convert knows to write."""
    ctx = _planned(source, facts, flagged)
    before = {node for node, (rule, _, _) in ctx.blocked.items() if rule in _CONVERTED}
    masked(ctx)
    held(ctx)
    places(ctx)
    pointers(ctx)
    bounded(ctx)
    still = set(ctx.blocked)
    known_masks(ctx)
    known = still - ctx.blocked.keys()
    given = returned_numbers(ctx)
    still = set(ctx.blocked)
    drops(ctx)
    dropped = still - ctx.blocked.keys()
    stops(ctx)
    branches(ctx)
    settled = before - ctx.blocked.keys()
    told = []
    written = {source.span(target).line for target in places(ctx).writes}
    for node, finding in flagged:
        if finding.rule == "DYN006" and finding.line in written:
            continue
        if node in known:
            what = f"{finding.message}; convert finds it from the sizes"
            finding = replace(
                finding, message=what, advice="", severity="info", effort=0.0, blocks=False
            )
        elif node in settled and finding.rule in _CONVERTED:
            how = _RETURNED if node in given else _CONVERTED[finding.rule]
            how = _DROPPED if node in dropped else how
            what = f"{finding.message}; {how}"
            finding = replace(
                finding, message=what, advice="", severity="info", effort=0.0, blocks=False
            )
        told.append((node, finding))
    return told


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


def _masked(source: Source, found: Masked, lines: range, placed: Placed) -> list[Placed]:
    """What is left of a finding beside the note on the rows of a mask."""
    node, finding = placed
    if node is found.reads[0]:
        what = f"{finding.message}; convert computes all rows, and writes those of the mask"
        note = replace(finding, message=what, advice="", severity="info", effort=0.0, blocks=False)
        return [(node, note)]
    if found.settles(source.index, node) or (finding.rule == "DYN006" and finding.line in lines):
        return []
    return [placed]


def _may_lack_gradients(source: Source, found: cst.CSTNode) -> bool:
    """Whether a selection may run where no gradient is recorded, which convert leaves alone."""
    around = source.index.around(found)
    items = [item for node in around if isinstance(node, cst.With) for item in node.items]
    return any(word in syntax.code(item) for item in items for word in _GRADIENTS)
