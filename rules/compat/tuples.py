"""One number for each axis."""

from __future__ import annotations

from collections.abc import Iterable


def ntuple(x, n):
    """``x`` itself as a tuple where it is iterable, else ``n`` times."""
    return tuple(x) if isinstance(x, Iterable) else (x,) * n


def reverse_repeat_tuple(t, n):
    """The items of ``t`` in reverse, each ``n`` times."""
    return tuple(one for one in reversed(t) for _ in range(n))
