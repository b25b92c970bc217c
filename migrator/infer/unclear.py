"""Attributes that are None as far as the file tells, and that a method gives what nobody in the file says.

``self.cache = None`` and ``def put(self, x): self.cache = x`` that others call: None is where it begins, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import ClassInfo, Facts
from migrator.infer.python import is_self
from migrator.syntax import assigned_to


def unclear(every: Sequence[Facts]) -> bool:
    """Take such attributes of some files for unknown; whether one was taken for None, so that its readers are walked."""
    again = False
    for info, name in [found for facts in every for found in _given_anything(facts)]:
        info.unclear.add(name)
        if info.attributes[name] == k.NONE:
            again, info.attributes[name] = True, k.UNKNOWN
            for reader in info.readers:
                reader.dirty = True
    return again


def stays_unclear(info: ClassInfo, name: str, kind: k.Kind) -> bool:
    """Whether an attribute that is given None is unknown all the same; one of another file's class is noted as such."""
    known = info.attributes.get(name)
    if info.settled is not None and known in (k.NONE, k.UNKNOWN):
        info.unclear.add(name)  # that file declares no data
    return isinstance(known, k.Unknown) and kind == k.NONE and name in info.unclear


def _given_anything(facts: Facts) -> Iterator[tuple[ClassInfo, str]]:
    """The attributes of own classes that some line gives None, and another what is not known."""
    for info in facts.classes.values():
        kinds = info.attributes
        names = {name for name, kind in kinds.items() if kind in (k.NONE, k.UNKNOWN)}
        if not names or not facts.tree.has(info.node):
            continue
        given: dict[bool, set[str]] = {True: set(), False: set()}
        for one in facts.tree.within(info.node.body, cst.Assign, cst.AnnAssign):
            kind = facts.kind(one.value) if one.value is not None else None
            if kind != k.NONE and not isinstance(kind, k.Unknown):
                continue
            for target in assigned_to(one):
                if isinstance(target, cst.Attribute) and is_self(target.value):
                    given[kind == k.NONE].add(target.attr.value)
        yield from ((info, name) for name in sorted(names & given[True] & given[False]))
