"""Buffers that a module may do without."""

from __future__ import annotations

from flax import nnx


def buffer(value, **options):
    """An ``nnx.Variable`` that holds an array; None for None."""
    return None if value is None else nnx.Variable(value, **options)
