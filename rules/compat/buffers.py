"""Buffers that a module may do without."""

from __future__ import annotations

from flax import nnx


def buffer(value, **options):
    """An ``nnx.Variable`` that holds an array; None for None."""
    return None if value is None else nnx.Variable(value, **options)


def filled(held, value):
    """A buffer with another value; where it is None yet, as torch allows, it becomes one, and None again for None."""
    if held is None or value is None:
        return nnx.data(buffer(value))
    held.set_value(value)
    return held
