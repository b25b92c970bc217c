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


def clouded(every: Sequence[Facts]) -> bool:
    """Take such attributes of some files for unknown; whether there were any, so that their readers are walked again."""
    found = [(info, name) for facts in every for info, name in _given_anything(facts)]
    for info, name in found:
        info.unclear.add(name)
        info.attributes[name] = k.UNKNOWN
        for reader in info.readers:
            reader.dirty = True
    return bool(found)


def _given_anything(facts: Facts) -> Iterator[tuple[ClassInfo, str]]:
    for info in facts.classes.values():
        names = {name for name, kind in info.attributes.items() if kind == k.NONE}
        if not names or not facts.tree.has(info.node):
            continue
        given = set()
        for one in facts.tree.within(info.node.body, cst.Assign, cst.AnnAssign):
            if one.value is None or not isinstance(facts.kind(one.value), k.Unknown):
                continue
            for target in assigned_to(one):
                if isinstance(target, cst.Attribute) and target.attr.value in names:
                    given |= {target.attr.value} if is_self(target.value) else set()
        yield from ((info, name) for name in sorted(given))
