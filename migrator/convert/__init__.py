"""From PyTorch source to Flax source: kinds, passes, helpers, imports."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from migrator import syntax
from migrator.convert.assemble import assemble, with_helpers
from migrator.convert.context import Context
from migrator.convert.layout import parses, wrapped
from migrator.convert.leftovers import check_leftovers
from migrator.convert.passes import load
from migrator.convert.rewriter import Rewriter
from migrator.errors import UserError
from migrator.findings import Finding, ordered
from migrator.infer import infer
from migrator.source import Source

__all__ = ["ConvertResult", "convert_source"]


@dataclass(frozen=True)
class ConvertResult:
    """What became of one file.

    Attributes:
      code: the converted source; it always parses.
      findings: what a person should look at, in the order of the source.
      complete: nothing was left in place.
    """

    code: str
    findings: list[Finding] = field(default_factory=list)
    complete: bool = True


def convert_source(text: str, target: str = "nnx", path: str | None = None) -> ConvertResult:
    """Convert one file of PyTorch source to JAX and Flax.

    Nothing of the source is imported or run.

    Args:
      text: Python source.
      target: ``"nnx"``, the only target.
      path: the file's name, for messages.

    Raises:
      SourceError: the text does not parse; one line that says where.
      UserError: an unknown target.
    """
    if target != "nnx":
        raise UserError(f"unknown target {target!r}; the target is 'nnx'")
    load()
    with uncollected():
        source = Source(text, path)
    if not _mentions_torch(text):
        return ConvertResult(text)
    with uncollected():
        return _convert(source)


@contextmanager
def uncollected() -> Iterator[None]:
    """Pause the cyclic garbage collector: syntax trees are large, live to the end and hold no cycles.

    Its full passes over them double the time of a conversion."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _convert(source: Source) -> ConvertResult:
    facts = infer(source)
    ctx = Context(source, facts)
    _block_flagged(ctx)
    rewriter = Rewriter(ctx)
    body = rewriter.body(source.tree.body)
    helpers = ctx.helpers.text()
    own = assemble(ctx, syntax.changed(source.tree, body=body), helpers)
    text = wrapped(own, source.text)
    if not parses(text):
        text = own
        ast.parse(text)  # what the passes made always parses: an error here is ours
    code = with_helpers(text, helpers)
    check_leftovers(ctx, own, code)
    findings = ordered(ctx.findings)
    return ConvertResult(code, findings, not any(f.blocks for f in findings))


def _mentions_torch(text: str) -> bool:
    return "torch" in text


def _block_flagged(ctx: Context) -> None:
    """Let the flag rules say which statements cannot be converted as they stand."""
    from migrator.analyze import run_flags

    for node, finding in run_flags(ctx.source, ctx.facts):
        if finding.blocks:
            ctx.blocked[node] = (finding.rule, finding.message, finding.advice)
            continue
        ctx.findings.append(finding)
        if finding.rule == "TRC011":
            ctx.dropped.add(node)
