"""libcst imported so that its classes are plain ones: ``isinstance`` asks an abstract class three times as long.

Import this before libcst. Where somebody has imported libcst already its classes stay abstract ones, and all works as well.
"""

from __future__ import annotations

import abc
import sys
from typing import Any


class _Base:
    """What stands for ``abc.ABC`` while libcst is imported: nothing as a base of its classes, itself for others."""

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        module = sys._getframe(1).f_globals.get("__name__", "")
        return () if module.startswith("libcst.") else (_ABC,)


_ABC = abc.ABC


def _load() -> None:
    abc.ABC = _Base()  # type: ignore[misc, assignment]
    try:
        import libcst  # noqa: F401
    finally:
        abc.ABC = _ABC  # type: ignore[misc]


if "libcst" not in sys.modules:
    _load()
