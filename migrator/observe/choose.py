"""Which observed facts decide something: the fewest that give what all of them together give."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrator.infer import kinds as k
from migrator.infer.observed import Observed
from migrator.observe.facts import Fact, observe
from migrator.package.follow import Followed
from migrator.project import Conversion, File, convert_files

Convert = Callable[[Mapping[str, Observed]], Conversion]


def convert_observed(
    cases: Sequence[str],
    files: Sequence[File],
    out: Path | None,
    copies: Followed | None = None,
    **options: Any,
) -> Conversion:
    """Convert files with what a run of cases shows, where that decides something; nothing is written.

    Args:
      cases, copies: see ``migrator.observe.facts.observe``.
      out, options: of ``convert_files``.

    Raises:
      UserError: a case cannot be run.
    """
    facts = observe(cases, files, copies)
    with tempfile.TemporaryDirectory(prefix="migrate-") as directory:
        cache = Path(directory)  # a trial works on the files that a fact concerns

        def convert(observed: Mapping[str, Observed]) -> Conversion:
            return convert_files(files, out=out, cache=cache, observed=observed, **options)

        conversion, used = converted(facts, convert)
    conversion.observed = [fact.finding() for fact in used]
    return conversion


def converted(facts: Sequence[Fact], convert: Convert) -> tuple[Conversion, list[Fact]]:
    """The conversion with as few facts as give the findings that all of them give, and those facts.

    Proof comes first: where nothing that was seen changes a finding, the conversion is the one without facts.

    Args:
      facts: the most telling first; those are kept rather than later ones.
    """
    search = _Search(facts, convert)
    if search.enough([]):
        kept: list[Fact] = []
    else:
        kept = search.needed([], facts, False)
        if not search.enough(kept):  # facts that only together change nothing
            kept = list(facts)
    for i, fact in enumerate(kept):
        weaker = replace(fact, kind=k.loosened(fact.kind), dtype="")
        trial = [*kept[:i], weaker, *kept[i + 1 :]]
        if weaker.kind != fact.kind and search.enough(trial):
            kept = trial
    return search.run(kept), kept


class _Search:
    def __init__(self, facts: Sequence[Fact], convert: Convert) -> None:
        self._seen: dict[str, dict[int, k.Kind]] = {}
        for fact in facts:
            self._seen.setdefault(fact.module, {})[fact.place] = fact.kind
        self._convert = convert
        self._goal = _problems(self.run(facts))

    def run(self, used: Sequence[Fact]) -> Conversion:
        """The conversion with these facts."""
        kinds: dict[str, dict[int, k.Kind]] = {}
        for fact in used:
            kinds.setdefault(fact.module, {})[fact.place] = fact.kind
        return self._convert(
            {m: Observed(seen, kinds.get(m, {})) for m, seen in self._seen.items()}
        )

    def enough(self, used: Sequence[Fact]) -> bool:
        """Whether these facts leave the findings that all facts leave."""
        return _problems(self.run(used)) == self._goal

    def needed(self, base: list[Fact], facts: Sequence[Fact], changed: bool) -> list[Fact]:
        """The facts that are needed beside ``base`` (QuickXplain, Junker 2004: earlier facts are preferred)."""
        if changed and self.enough(base):
            return []
        if len(facts) == 1:
            return list(facts)
        middle = len(facts) // 2
        first, second = facts[:middle], facts[middle:]
        later = self.needed([*base, *first], second, bool(first))
        return [*self.needed([*base, *later], first, bool(later)), *later]


def _problems(conversion: Conversion) -> set[tuple[str, int, int, str, str]]:
    """What could not be converted."""
    return {
        (finding.path, finding.line, finding.column, finding.rule, finding.message)
        for finding in conversion.findings
        if finding.blocks
    }
