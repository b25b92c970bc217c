"""Whether the rounds of inference go in a circle: what each leaves is what the one before it has left.

An attribute that a method assigns twice, ``self.head = build(); self.head = nn.Identity()``, is one thing and then
the other each time the method is walked, so that whoever reads it is walked again although nothing is new. As a round
comes to the same wherever it starts from the same, those to come may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import Facts
from migrator.tree import Tree

MAX_ROUNDS = 8


class Rounds:
    """What the rounds over some files leave, each compared with those before it."""

    def __init__(self, every: Sequence[Facts]) -> None:
        self.every = every
        self._number = 0
        self._left: list[_State] = []

    def __iter__(self) -> Iterator[int]:
        return iter(range(MAX_ROUNDS))

    def circle(self, walker: Any = None) -> bool:
        """Whether all rounds to come leave what the one that has ended leaves, after one circle or several.

        Args:
          walker: what goes on to the next round, with what it has noted.
        """
        self._number += 1
        if self._number == 1:
            return False  # it has found nearly all that there is
        left, rest = _State(self.every, walker), MAX_ROUNDS - self._number
        self._left.append(left)
        return any(
            rest % length == 0 and before.same(left)
            for length, before in enumerate(reversed(self._left[:-1]), 1)
        )


class _State:
    """All that a round may change and the next one may read, as it is now."""

    def __init__(self, every: Sequence[Facts], walker: Any) -> None:
        tables: list[Mapping[Any, Any]] = []
        for facts in every:
            tables += [facts.functions, facts.names, facts.classes]
        infos = {id(info): info for table in tables for info in table.values()}
        holders = [*every, *infos.values(), *([walker] if walker is not None else [])]
        seen: dict[int, int] = {}
        self.known = [(id(one), _fields(one, seen)) for one in holders]
        self.kinds: list[tuple[list[Tree], dict[cst.CSTNode, k.Kind]]] = []
        for kinds in {id(facts.kinds): facts.kinds for facts in every}.values():
            trees = [facts.tree for facts in every if facts.kinds is kinds]
            self.kinds.append((trees, dict(kinds)))

    def same(self, later: _State) -> bool:
        """Whether nothing has changed."""
        if not _alike(self.known, later.known):
            return False
        for (trees, before), (_, after) in zip(self.kinds, later.kinds, strict=True):
            for node, kind in after.items():
                known = before.get(node)
                if known is kind:
                    continue
                if known is not None:
                    if not _alike(known, kind):
                        return False
                elif any(tree.has(node) for tree in trees):
                    return (
                        False  # all others are of hints in strings, which are parsed anew each time
                    )
        return True


def _fields(holder: Any, seen: dict[int, int]) -> dict[str, Any]:
    """What an object holds, but for the kinds of a file, which are compared by themselves.

    Args:
      seen: the containers that others hold, by their ids: of what several hold one copy is enough.
    """
    made: dict[str, Any] = {}
    for name, value in vars(holder).items():
        if name == "kinds":
            continue
        if isinstance(value, _CONTAINERS):
            if id(value) in seen:
                made[name] = seen[id(value)]
                continue
            seen[id(value)] = len(seen)
            value = _copied(value)
        made[name] = value
    return made


_CONTAINERS = (dict, list, tuple, set)


def _copied(value: Any) -> Any:
    """Containers copied, and what they hold as it is: kinds do not change, all else is looked at by itself."""
    if isinstance(value, dict):
        return {n: _copied(v) if isinstance(v, _CONTAINERS) else v for n, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_copied(v) if isinstance(v, _CONTAINERS) else v for v in value])
    return set(value) if isinstance(value, set) else value


def _alike(one: Any, other: Any) -> bool:
    """Whether two kinds, or containers of some, are equal and written alike: 1 equals True, and 0.0 equals -0.0."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        if one.keys() != other.keys():
            return False
        for name, value in one.items():
            if value is not other[name] and not _alike(value, other[name]):
                return False
        return True
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, k.Const):
        return repr(one.value) == repr(other.value)
    if isinstance(one, k.Kind):
        return _alike(vars(one), vars(other))
    return bool(one == other)
