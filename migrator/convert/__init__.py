"""From PyTorch source to Flax source: kinds, passes, helpers, imports."""

from __future__ import annotations

import ast
import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import migrator.plain  # noqa: F401  (before libcst)
from migrator import syntax
from migrator.convert.assemble import assemble, with_helpers, without_imports
from migrator.convert.context import Context
from migrator.convert.hidden_names import check_hidden
from migrator.convert.layout import parsed_names, wrapped
from migrator.convert.leftovers import check_leftovers
from migrator.convert.own_imports import by_own_imports
from migrator.convert.passes import load
from migrator.convert.randomness import RngPlan
from migrator.convert.rewriter import Rewriter
from migrator.convert.trim import trimmed
from migrator.errors import UserError
from migrator.findings import CONTRADICTED, Finding, ordered
from migrator.infer import FunctionInfo, Linked, infer, infer_together
from migrator.infer.observed import Observed, contradictions, described
from migrator.saying import may_concern_torch
from migrator.source import Source

__all__ = ["ConvertResult", "convert_source", "convert_together"]


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
        return _convert(text, path)


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


def convert_together(
    sources: Sequence[Source],
    linked: Linked,
    helpers: Mapping[str, str],
    observed: Mapping[str, Observed] | None = None,
) -> list[tuple[ConvertResult, Context]]:
    """Convert files that import one another, with what is known of the rest of their project.

    Args:
      linked: answers for the other files.
      helpers: module → the module it imports helpers from (``".._torch_compat"``); empty to carry them itself.
      observed: module → what a run of the original showed there.
    """
    load()
    observed = observed or {}
    every = infer_together(sources, linked, observed)
    plan = RngPlan(
        replace(every[0], functions={n: f for e in every for n, f in e.functions.items()})
    )
    made = []
    mutated: dict[FunctionInfo, set[str]] = {}
    for source, facts in zip(sources, every, strict=True):
        ctx = Context(source, facts, plan)
        ctx.mutated = mutated
        ctx.helpers.elsewhere = helpers.get(source.module, "")
        ctx.helpers.unique = bool(ctx.helpers.elsewhere)
        if source.module in observed:
            _block_contradicted(ctx, observed[source.module])
        made.append((_rewritten(source, ctx), ctx))
    return made


def _convert(text: str, path: str | None) -> ConvertResult:
    source = Source(text, path)
    if not may_concern_torch(text):
        return ConvertResult(text)
    result, ctx = converted(source)
    ctx.release()
    return result


def converted(source: Source) -> tuple[ConvertResult, Context]:
    """A file by itself, with what became known of it."""
    load()
    ctx = Context(source, infer(source))
    return _rewritten(source, ctx), ctx


def _rewritten(source: Source, ctx: Context) -> ConvertResult:
    from migrator.convert.passes.package_names import with_new_names

    _block_flagged(ctx)
    _unblock_selected(ctx)
    rewriter = Rewriter(ctx)
    body = rewriter.body(source.tree.body)
    tree = with_new_names(ctx, syntax.changed(source.tree, body=body))
    tree = by_own_imports(ctx, tree)
    texts = ctx.helpers.texts()
    whole = helpers = "\n\n".join(texts)
    own = assemble(ctx, tree, whole)
    made = ""
    if whole:
        made, parsed = _parsed(own, source.text)
        trim = trimmed(parsed, texts, made)
        helpers = trim.helpers
        fewer = trim.of_own(own if helpers else assemble(ctx, tree, helpers))
        fewer = without_imports(fewer, ctx.helpers.imports, whole, helpers)
        if fewer != own:
            own, made = fewer, ""
    if not made:
        made = wrapped(own, source.text)
        parses, ctx.names_made = parsed_names(made)
        if not parses:
            made = own
            ast.parse(made)  # what the passes made always parses: an error here is ours
    code = with_helpers(made, helpers)
    check_leftovers(ctx, own, code)
    check_hidden(ctx, code)
    findings = ordered(ctx.findings)
    return ConvertResult(code, findings, not any(f.blocks for f in findings))


def _parsed(own: str, source: str) -> tuple[str, ast.Module]:
    """What the passes made with its long lines broken where it still parses then, and its syntax tree."""
    made = wrapped(own, source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return made, ast.parse(made)
        except (SyntaxError, ValueError):
            return own, ast.parse(own)


def _block_flagged(ctx: Context) -> None:
    """Let the flag rules say which statements cannot be converted as they stand."""
    from migrator.analyze import run_flags

    ctx.flagged = run_flags(ctx.source, ctx.facts, ctx.plan)
    for node, finding in ctx.flagged:
        if finding.blocks:
            ctx.blocked[node] = (finding.rule, finding.message, finding.advice)
            continue
        ctx.findings.append(finding)
        if finding.rule == "TRC011":
            ctx.dropped.add(node)


def _unblock_selected(ctx: Context) -> None:
    """Take back what the flag rules say about rows that can be converted together."""
    from migrator.convert.known_masks import known_masks
    from migrator.convert.passes.bounded_writes import bounded
    from migrator.convert.passes.branching import branches
    from migrator.convert.passes.dropped_layers import drops
    from migrator.convert.passes.masked_reductions import masked
    from migrator.convert.passes.nonzero_fills import fills
    from migrator.convert.passes.pointers import pointers
    from migrator.convert.passes.selected_places import places
    from migrator.convert.passes.selected_rows import selected
    from migrator.convert.passes.selected_values import held
    from migrator.convert.passes.skipping import skips
    from migrator.convert.passes.stopping import stops

    selected(ctx)
    skips(ctx)
    drops(ctx)
    masked(ctx)
    held(ctx)
    places(ctx)
    pointers(ctx)
    bounded(ctx)
    fills(ctx)
    known_masks(ctx)
    stops(ctx)
    branches(ctx)


def _block_contradicted(ctx: Context, observed: Observed) -> None:
    """Leave the statements alone of which a run of the original showed that inference is wrong about them."""
    for node, known, seen in contradictions(ctx.facts, observed):
        text = " ".join(syntax.code(node).split())[:40]
        message = (
            f"`{text}` is read as {described(known)} here, and was seen to be {described(seen)}"
        )
        advice = "say what it is with a type hint, and look at where it comes from"
        ctx.blocked.setdefault(node, (CONTRADICTED, message, advice))
