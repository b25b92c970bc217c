"""Blocks that are left out by a draw."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def skipped(skip, unchanged, output):
    """``unchanged`` where ``skip`` holds, else ``output``, which has its shape and dtype.

    ``skip`` is False outside of training, where nothing is drawn, and else an array: both are computed then.
    """
    return output if skip is False else lax.select(jnp.reshape(skip, ()), unchanged, output)


def left_out(skip, before, after):
    """``before`` where ``skip`` holds, else ``after``: what a layer leaves that may be left out by a draw.

    Python chooses where the draw is known; while JAX traces both are computed, and have one shape and dtype.
    """
    if not isinstance(skip, jax.core.Tracer):
        return before if skip else after
    return lax.select(jnp.reshape(skip, ()), before, after)
