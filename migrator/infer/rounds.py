"""Whether the rounds of inference go in a circle: what each leaves is what the one before it has left.

An attribute that a method assigns twice, ``self.head = build(); self.head = nn.Identity()``, is one thing and then
the other each time the method is walked, so that whoever reads it is walked again although nothing is new. As a round
comes to the same wherever it starts from the same, those to come may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from migrator.infer import kinds as k
from migrator.infer.facts import Facts

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
        self.known = [
            (id(one), {n: _copied(value) for n, value in vars(one).items() if n != "kinds"})
            for one in holders
        ]
        self.kinds = [dict(facts.kinds) for facts in every]
        self.trees = [facts.tree for facts in every]

    def same(self, later: _State) -> bool:
        """Whether nothing has changed."""
        if self.known != later.known or not _alike(self.known, later.known):
            return False
        for tree, before, after in zip(self.trees, self.kinds, later.kinds, strict=True):
            for node, kind in after.items():
                known = before.get(node)
                if known is kind:
                    continue
                if known is not None:
                    if not _alike(known, kind):
                        return False
                elif tree.has(node):
                    return (
                        False  # all others are of hints in strings, which are parsed anew each time
                    )
        return True


def _copied(value: Any) -> Any:
    """Containers copied, and what they hold as it is: kinds do not change, all else is looked at by itself."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value))
    return set(value) if isinstance(value, set) else value


def _alike(one: Any, other: Any) -> bool:
    """Whether two kinds, or containers of some, are equal and written alike: 1 equals True, and 0.0 equals -0.0."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_alike(v, other[n]) for n, v in one.items())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, k.Const):
        return repr(one.value) == repr(other.value)
    if isinstance(one, k.Kind):
        return _alike(vars(one), vars(other))
    return bool(one == other)
