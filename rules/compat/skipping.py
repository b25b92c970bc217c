"""Blocks that are left out by a draw."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def skipped(skip, unchanged, output):
    """``unchanged`` where ``skip`` holds, else ``output``, which has its shape and dtype.

    ``skip`` is False outside of training, where nothing is drawn, and else an array: both are computed then.
    """
    return output if skip is False else lax.select(jnp.reshape(skip, ()), unchanged, output)
