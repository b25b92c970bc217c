"""What each expression of a file is: kinds found by a flow-sensitive walk, without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from migrator.infer.definitions import Definitions
from migrator.infer.facts import ClassInfo, Facts, FunctionInfo, Linked, keeps_makers
from migrator.infer.observed import Observed
from migrator.infer.offered import call_model
from migrator.infer.optional import settled
from migrator.infer.rounds import Rounds
from migrator.infer.unclear import unclear
from migrator.source import Source

__all__ = ["ClassInfo", "Facts", "FunctionInfo", "Linked", "infer", "infer_together"]


def infer(source: Source) -> Facts:
    """The kinds of a file.

    Functions are walked, ``__init__`` first, until attributes, parameters and results stand still: what a
    method learns of ``self.x``, another one uses. Only what has changed is walked again.
    """
    return infer_together([source])[0]


def infer_together(
    sources: Sequence[Source],
    linked: Linked | None = None,
    observed: Mapping[str, Observed] | None = None,
) -> list[Facts]:
    """The kinds of files that import one another, in the order of the sources.

    Args:
      linked: answers for all other files of the project.
      observed: module → what a run of the original showed there.
    """
    keeps = (
        linked.keeps_makers
        if linked is not None
        else any(keeps_makers(source.text) for source in sources)
    )
    common = Facts(sources[0].index, linked=linked, keeps_makers=bool(keeps))
    every = [
        replace(
            common,
            functions={},
            module_env={},
            dead=[],
            module=s.module,
            tree=s.index,
            observed=observed[s.module].at(s.index) if observed and s.module in observed else {},
        )
        for s in sources
    ]
    for facts in every:
        facts.tree.beside = [one.tree for one in every if one is not facts]
        facts.settled = settled(facts)
    _walk(sources, every, linked)
    if unclear(every):
        _walk(sources, every, linked)
    return every


def _walk(sources: Sequence[Source], every: Sequence[Facts], linked: Linked | None) -> None:
    """Walk the files until nothing more is found."""
    rounds = Rounds(every)
    for _ in rounds:
        walked = False
        for source, facts in zip(sources, every, strict=True):
            before = facts.module_env
            walker = Definitions(facts, source.module)
            walker.block(source.tree.body)
            facts.module_env = walker.env
            if linked is not None:
                linked.publish(source.module, walker.env)
            if len(sources) > 1 and before != walker.env:
                for info in (f for one in every for f in one.functions.values()):
                    info.dirty = True  # what an import in a circle brings is known a round later
            walked |= _settle(facts, walker)
        if not walked or rounds.circle():
            break


def _settle(facts: Facts, walker: Definitions) -> bool:
    """Walk the functions whose inputs have changed; whether there were any."""
    env = dict(walker.env)
    walked = False
    rounds = Rounds([facts])
    for _ in rounds:
        for info in facts.functions.values():
            if info.outer is not None and info.dirty:
                info.outer.dirty = True
        ordered = sorted(
            (f for f in facts.functions.values() if f.outer is None and f.dirty),
            key=lambda f: f.short not in ("__init__", "__new__"),
        )
        for info in ordered:
            walker.enter(info, dict(info.closure if info.nested else env))
        walked |= bool(ordered)
        if not ordered:
            break
        call_model(facts, walker)
        if not any(f.dirty for f in facts.functions.values()) or rounds.circle(walker):
            break
    return walked
