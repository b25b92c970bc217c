"""Layers that torch lets write to their input, at the front of a Sequential whose input is read again."""

from __future__ import annotations

import functools
from typing import Any

import jax


class InPlace(functools.partial[jax.Array]):
    """An activation that torch lets write to its input: ``run_in_place`` says what is in it then."""


def run_in_place(layers: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """What torch's ``x`` holds once ``layers(x)`` has run, which the first layers write to, and the result."""
    written = x
    for layer in layers.layers:
        if not isinstance(layer, InPlace):
            break
        written = layer(written)
    return written, layers(x)
