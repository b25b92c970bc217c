"""numpy arrays in attributes of modules."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np


class HostArray:
    """A numpy array, or a list or dict of them, as part of a module's structure: under jit it stays one, which numpy
    may work with."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @cached_property
    def _key(self) -> Any:
        return _told_apart(self.value)  # once its constructor has filled it

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostArray) and self._key == other._key


def _told_apart(value: Any) -> Any:
    """What tells a value from another."""
    if isinstance(value, dict):
        return tuple((name, _told_apart(one)) for name, one in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(map(_told_apart, value))
    if not hasattr(value, "dtype"):
        return value
    array = np.asarray(value)
    return array.shape, array.dtype.str, array.tobytes()
