"""What each expression of a file is: kinds found by a flow-sensitive walk, without running anything."""

from __future__ import annotations

from migrator.infer.facts import ClassInfo, Facts, FunctionInfo
from migrator.infer.statements import Statements
from migrator.source import Source

__all__ = ["ClassInfo", "Facts", "FunctionInfo", "infer"]

MAX_ROUNDS = 8


def infer(source: Source) -> Facts:
    """The kinds of a file.

    Functions are walked, ``__init__`` first, until attributes, parameters and results stand still: what a
    method learns of ``self.x``, another one uses. Only what has changed is walked again.
    """
    facts = Facts(source.index)
    walker = Statements(facts, source.module)
    for _ in range(MAX_ROUNDS):
        walker = Statements(facts, source.module)
        walker.block(source.tree.body)
        if not _settle(facts, walker):
            break
    facts.module_env = walker.env
    return facts


def _settle(facts: Facts, walker: Statements) -> bool:
    """Walk the functions whose inputs have changed; whether there were any."""
    env = dict(walker.env)
    walked = False
    for _ in range(MAX_ROUNDS):
        for info in facts.functions.values():
            if info.outer is not None and info.dirty:
                info.outer.dirty = True
        ordered = sorted(
            (f for f in facts.functions.values() if f.outer is None and f.dirty),
            key=lambda f: f.short not in ("__init__", "__new__"),
        )
        for info in ordered:
            walker.enter(info, dict(env))
        walked |= bool(ordered)
        if not ordered:
            break
    return walked
