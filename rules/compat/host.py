"""numpy arrays in attributes of modules."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
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


def host_array(make: Callable[[], Any]) -> HostArray:
    """What a constructor makes of numbers alone, as a numpy array, also where the constructor itself is traced.

    Where it is not of numbers alone then, its shape and dtype: a module that is traced for these is not run.
    """
    with jax.ensure_compile_time_eval():
        value = make()
    if isinstance(value, jax.core.Tracer):
        return HostArray(jax.ShapeDtypeStruct(value.shape, value.dtype))
    return HostArray(np.asarray(value))


def _told_apart(value: Any) -> Any:
    """What tells a value from another."""
    if isinstance(value, dict):
        return tuple((name, _told_apart(one)) for name, one in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(map(_told_apart, value))
    if not hasattr(value, "dtype"):
        return value
    if isinstance(value, jax.ShapeDtypeStruct):
        return value
    array = np.asarray(value)
    return array.shape, array.dtype.str, array.tobytes()
