"""Which parameters of a module's forward the examples pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Arguments:
    """What calls of a function were given, so that it can be told what no call was.

    Args:
      function: a module's ``forward``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        parameters: Mapping[str, inspect.Parameter] = {}
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            pass  # written in C, say
        self._optional = [n for n, p in parameters.items() if p.default is not p.empty]
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._positional = [name for name, p in parameters.items() if p.kind in kinds]
        self._given: set[str] = set()

    def see(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Note one call; None is what stands for an argument that is left out."""
        given = [*zip(self._positional, args, strict=False), *kwargs.items()]
        self._given.update(name for name, value in given if value is not None)

    def note(self) -> str:
        """What to say of parameters with a default that no call gave a value; ``""`` where there are none."""
        never = [name for name in self._optional if name not in self._given]
        if not never:
            return ""
        more = f" and {len(never) - 6} more" if len(never) > 6 else ""
        return (
            f"not compared: {', '.join(never[:6])}{more} of forward, as no example passes a value"
        )
